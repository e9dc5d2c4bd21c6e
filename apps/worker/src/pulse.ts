import { Pulse } from "@adrelay/ledger";
import { describeProcess, type Lifecycle, startHeartbeat } from "@adrelay/service-kit";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { Registry } from "prom-client";

export interface PulseParts {
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly registry: Registry;
}

/** Lets the other processes know that this one runs, and watches whether Redis keeps what it has. */
export function startPulse({ log, lifecycle, registry }: PulseParts, redis: Redis): Pulse {
  const pulse = new Pulse({
    redis,
    registry,
    identity: { role: "worker", ...describeProcess() },
    onDataLost: (heldBefore) => log.error({ event: "redis_data_lost", ...heldBefore }),
  });
  startHeartbeat(pulse, lifecycle);
  return pulse;
}
