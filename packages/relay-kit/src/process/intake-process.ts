/** What the processes that publishers call have in common, gateway and proxy: what runs beside them, and their two listeners. */
import {
  createOpsApp,
  type DurabilityGuard,
  type HttpServer,
  type LoginGuard,
  OPS_LISTENER_LIMITS,
  type OPS_SETTINGS,
  reportDurability,
  reportMemory,
  startHttpServer,
} from "@adrelay/service-kit";
import type { Heartbeat } from "@adrelay/store";
import type { z } from "zod";
import { type CountOverload, type InFlight, reportInFlight } from "../admission/in-flight-metrics.ts";
import type { PublishersWatch } from "../publishers/publishers-watch.ts";
import { saveKeyUses, startHeartbeat } from "./heartbeat.ts";
import { type RelayBase, watchPublishers } from "./relay-base.ts";
import { type IntakeAdapters, type IntakeConfig, intakeOf } from "./relay-store.ts";

/** What runs beside the listeners. */
export interface IntakeParts {
  readonly publishersWatch: PublishersWatch;
  readonly heartbeat: Heartbeat;
  /** Whether Redis keeps now what is accepted. */
  readonly intake: Pick<DurabilityGuard, "isDurable">;
}

/** Watches the publishers' files, shows that this process runs, saves uses of keys, and reports whether Redis keeps what it takes. */
export async function startIntake(base: RelayBase, adapters: IntakeAdapters): Promise<IntakeParts> {
  const publishersWatch = await watchPublishers(base);
  const heartbeat = await startHeartbeat(base, adapters, publishersWatch);
  await saveKeyUses(base, adapters.store.keyUses, heartbeat);
  const intake = intakeOf(adapters, heartbeat);
  reportDurability(base.registry, intake);
  reportMemory(base.registry, adapters.guard);
  return { publishersWatch, heartbeat, intake };
}

const UNUSABLE = "is away, refuses writes or isn't durable";

type OpsOptions = Parameters<typeof createOpsApp>[0];
type ListenOptions = Parameters<typeof startHttpServer>[1];

interface OpsConfig extends IntakeConfig {
  readonly settings: IntakeConfig["settings"] & z.infer<z.ZodObject<typeof OPS_SETTINGS>>;
}

export interface OpsListenerOptions
  extends Pick<ListenOptions, "host" | "port">,
    Pick<OpsOptions, "document" | "routes"> {
  readonly loginGuard: LoginGuard;
}

/** Starts the listener of operators. It stops last, so that the stop can be watched. */
export async function startOpsListener(
  base: RelayBase<OpsConfig>,
  parts: IntakeAdapters & IntakeParts,
  { host, port, loginGuard, ...routes }: OpsListenerOptions,
): Promise<HttpServer> {
  const { role, config, log, lifecycle, registry } = base;
  const { redis, guard, intake, store, heartbeat, rulesOf } = parts;
  const ledger = store.metrics({
    listPublishers: () => config.publishers.current.map(({ id }) => id),
    publishersMax: config.settings.METRICS_PUBLISHERS_MAX,
    limitsOf: (publisher) => rulesOf(publisher).limits,
  });
  const redisCheck = {
    name: "redis",
    check: async () => (await redis.ping()) === "PONG" && intake.isDurable,
  };
  const app = createOpsApp({
    collect: async () => ({ registry, scraped: await ledger.collect() }),
    ...(role === "proxy"
      ? { checks: [{ ...redisCheck, warning: `${UNUSABLE}: calls of models go on, and new ones get no ad` }] }
      : {
          checks: [redisCheck],
          injectionChecks: [{ ...redisCheck, warning: `${UNUSABLE}: injections pass, and are untracked` }],
        }),
    warnings: () => ({ ...guard.warnings(), ...heartbeat.warnings(), ...store.room.warnings() }),
    isStopping: () => lifecycle.isStopping,
    log,
    access: { settings: config.settings, listenHost: host, guard: loginGuard },
    ...routes,
  });
  const limits = OPS_LISTENER_LIMITS;
  const server = await startHttpServer(app, { name: `the ${role}'s ops listener`, host, port, log, limits });
  lifecycle.onStopLast("ops listener", (signal) => server.stop(signal));
  return server;
}

export interface PublicListenerOptions
  extends Pick<ListenOptions, "host" | "port" | "answerHeaders">,
    Pick<InFlight, "settings" | "calls" | "bytes"> {
  readonly limits: NonNullable<ListenOptions["limits"]> & { readonly connectionsMax: number };
  readonly onOverload: CountOverload;
}

/** Starts the listener of callers, and reports how much it holds. */
export async function startPublicListener(
  { role, log, lifecycle, registry }: Pick<RelayBase, "role" | "log" | "lifecycle" | "registry">,
  handler: Parameters<typeof startHttpServer>[0],
  { settings, calls, bytes, onOverload, ...listening }: PublicListenerOptions,
): Promise<HttpServer> {
  const server = await startHttpServer(handler, {
    name: `the ${role}`,
    ...listening,
    log,
    onNoRoom: () => onOverload("connections"),
    isStopping: () => lifecycle.isStopping,
  });
  lifecycle.onStop("listener", (signal) => server.stop(signal));
  reportInFlight(registry, {
    settings,
    calls,
    bytes,
    connections: () => server.connections,
    connectionsMax: listening.limits.connectionsMax,
  });
  return server;
}
