/** How much this process holds, how much it may hold, and what it refused. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { Admission } from "./admission.ts";
import { PROCESS_LIMITS, type ProcessLimit } from "./holding.ts";

/** Counts refusals because of a limit of the process. */
export type CountOverload = (limit: ProcessLimit) => void;

/** Registers the counter of refusals because of a limit of the process. */
export function createOverloadCounter(registry: Registry): CountOverload {
  const refused = new Counter({
    name: "adrelay_overload_refused_total",
    help: "Requests that this process refused because it had no room, by limit: calls, bytes, connections. A refused injection got a fallback.",
    labelNames: ["limit"],
    registers: [registry],
  });
  for (const limit of PROCESS_LIMITS) {
    refused.inc({ limit }, 0);
  }
  return (limit) => refused.inc({ limit });
}

/** What `reportInFlight` shows. */
export interface InFlight extends Pick<Admission, "calls" | "bytes"> {
  /** How the names of the limits' settings begin. */
  readonly settings: "GATEWAY" | "PROXY";
  readonly connectionsMax: number;
  connections(): number;
}

/** Shows at each scrape what the process holds. */
export function reportInFlight(
  registry: Registry,
  { settings, calls, bytes, connections, connectionsMax }: InFlight,
): void {
  gauge(
    registry,
    "adrelay_in_flight_calls",
    "Requests that this process works on, waits included.",
    () => calls.used,
  );
  gauge(
    registry,
    "adrelay_in_flight_calls_max",
    `The most of them, by ${settings}_CALLS_IN_FLIGHT.`,
    () => calls.max,
  );
  gauge(
    registry,
    "adrelay_in_flight_bytes",
    "Bytes of requests and of providers' answers that this process holds, their copies included.",
    () => bytes.used,
  );
  gauge(
    registry,
    "adrelay_in_flight_max_bytes",
    `The most of them: ${settings}_BYTES_IN_FLIGHT.`,
    () => bytes.max,
  );
  gauge(registry, "adrelay_open_connections", "Connections of the public listener.", connections);
  gauge(
    registry,
    "adrelay_open_connections_max",
    `The most of them: ${settings}_CONNECTIONS.`,
    () => connectionsMax,
  );
}

function gauge(registry: Registry, name: string, help: string, read: () => number): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
}
