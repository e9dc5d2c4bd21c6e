/** Makes every part of the gateway and starts it. */
import { ProviderClient, PUBLISHERS_LOOK_INTERVAL_MS, PublishersWatch, proxiesOf } from "@adrelay/provider";
import {
  connectRedis,
  createLogger,
  createOpsApp,
  createRegistry,
  type DurabilityGuard,
  describeProcess,
  type Environment,
  guardRedis,
  Lifecycle,
  LoginGuard,
  makeReadBody,
  openTracing,
  Periodic,
  PeriodicHeartbeat,
  type RunnableService,
  redisTargetOf,
  reportDurability,
  reportMemory,
  startHttpServer,
  type Tracing,
} from "@adrelay/service-kit";
import { type Heartbeat, loadMissingRights, openStore, type Store } from "@adrelay/store";
import type { Express, Router } from "express";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { makeAcknowledge } from "./acknowledge/acknowledge.ts";
import { makeAcknowledgeHandler } from "./acknowledge/handler.ts";
import { OutcomeWaiters } from "./acknowledge/outcome-waiters.ts";
import { makeDoctor } from "./admin/doctor.ts";
import { createAdminRouter } from "./admin/router.ts";
import type { GatewayConfig } from "./config.ts";
import { createGatewayMetrics } from "./gateway-metrics.ts";
import { makeStartInjectionHandler } from "./injection/handler.ts";
import { makeStartInjection } from "./injection/start-injection.ts";
import { PendingWork } from "./injection/waits.ts";
import { makeLookUpHandler } from "./look-up.ts";
import { createPublicApp, makeAuthenticate } from "./public-app.ts";

/** The share of a stop's time after which injections that still run get a fallback. */
const DRAIN_SHARE = 0.4;

export async function compose(config: GatewayConfig, env: Environment): Promise<RunnableService> {
  const { settings } = config;
  const log = createLogger("gateway", settings.LOG_LEVEL);
  const lifecycle = new Lifecycle(log);
  const tracing = await openTracing({ service: "adrelay-gateway", env, log });
  lifecycle.onStopLast("traces", () => tracing.stop());
  const base = { config, log, lifecycle, tracing, registry: createRegistry(), drain: new AbortController() };
  const adapters = await openAdapters(base);
  const publishersWatch = await watchPublishers(base);
  const app = makePublicApp(base, adapters);
  const heartbeat = adapters.store.heartbeat({
    identity: { role: "gateway", ...describeProcess() },
    publishersFile: () => publishersWatch.state,
    registry: base.registry,
    subscriber: adapters.subscriber,
  });
  await lifecycle.start("heartbeat", new PeriodicHeartbeat(heartbeat));
  const intake = intakeOf(adapters.guard, heartbeat);
  reportDurability(base.registry, intake);
  reportMemory(base.registry, adapters.guard);
  const opsServer = await startHttpServer(
    makeOpsApp(base, { ...adapters, heartbeat, intake, publishersWatch }),
    {
      name: "the gateway's ops listener",
      host: settings.GATEWAY_OPS_HOST,
      port: settings.GATEWAY_OPS_PORT,
      log,
    },
  );
  // It stops last, so that the stop can be watched.
  lifecycle.onStopLast("ops listener", (signal) => opsServer.stop(signal));
  const server = await startHttpServer(app, {
    name: "the gateway",
    host: settings.GATEWAY_HOST,
    port: settings.GATEWAY_PORT,
    log,
    limits: { keepAliveTimeoutMs: settings.KEEP_ALIVE_TIMEOUT_MS },
    isStopping: () => lifecycle.isStopping,
  });
  lifecycle.onStop("listener", (signal) => server.stop(signal));
  lifecycle.onStop("waiting callers", () => {
    adapters.waiters.stop();
    setTimeout(() => base.drain.abort(), settings.SHUTDOWN_TIMEOUT_MS * DRAIN_SHARE).unref();
  });
  const listening = { port: server.port, ops_port: opsServer.port };
  return {
    log,
    lifecycle,
    shutdownDelayMs: settings.SHUTDOWN_DELAY_MS,
    shutdownTimeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    listening,
    onHangUp: () => publishersWatch.onHangUp(),
  };
}

/** What the parts are made from. */
interface Base {
  readonly config: GatewayConfig;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly tracing: Tracing;
  readonly registry: Registry;
  /** Fires when injections that still run must end. */
  readonly drain: AbortController;
}

type Adapters = Awaited<ReturnType<typeof openAdapters>>;

async function openAdapters({ config: { settings }, log, lifecycle }: Base) {
  const target = redisTargetOf(settings);
  const redis = connectRedis(target, "request", log);
  lifecycle.onStop("redis", () => redis.disconnect());
  const rules = { mode: settings.REDIS_DURABILITY, loadMissingRights: () => loadMissingRights(redis) };
  const guard = await guardRedis(redis, rules, log);
  const subscriber = connectRedis(target, "subscriber", log);
  lifecycle.onStop("redis subscriber", () => subscriber.disconnect());
  const store = openStore({
    redis,
    recordRetentionMs: settings.RECORD_RETENTION,
    deliveredRetentionMs: settings.DELIVERED_RETENTION,
    unknownIds: settings.UNKNOWN_ACK,
    log,
    isStopping: () => lifecycle.isStopping,
  });
  lifecycle.onStop("queue", () => store.stop());
  const provider = new ProviderClient(proxiesOf(settings));
  lifecycle.onStop("provider", () => provider.stop());
  const pending = new PendingWork((err) => log.error({ event: "background_work_failed", err }));
  lifecycle.onStop("late answers", () => pending.stop());
  const waiters = new OutcomeWaiters(subscriber, () => !guard.forbidden.includes("publish"));
  // Redis may be away now; ioredis subscribes as soon as it is there.
  waiters.start().catch((err: unknown) => log.warn({ event: "subscribe_failed", err }));
  const { keyUses } = store;
  await lifecycle.start("uses of keys", makeKeyUseSaver(keyUses, log));
  return { redis, subscriber, guard, store, provider, pending, waiters, keyUses };
}

const SAVE_KEY_USES_INTERVAL_MS = 1000;

/** Nobody waits for it, and what Redis doesn't take is saved later. */
function makeKeyUseSaver(keyUses: Pick<Store["keyUses"], "save">, log: Logger): Periodic {
  const onError = (err: unknown) => log.debug({ event: "key_uses_not_saved", err });
  return new Periodic(() => keyUses.save(), SAVE_KEY_USES_INTERVAL_MS, onError);
}

/** Keeps the publishers and keys as their files are. */
async function watchPublishers({ config, log, lifecycle, registry }: Base): Promise<PublishersWatch> {
  const watch = new PublishersWatch({ directory: config.publishers, log, registry });
  const onError = (err: unknown) => log.error({ event: "publishers_look_failed", err });
  await lifecycle.start("publishers", new Periodic(() => watch.look(), PUBLISHERS_LOOK_INTERVAL_MS, onError));
  return watch;
}

/** Whether Redis keeps an acknowledgment now: it is durable, and has taken the latest heartbeat with room for more. */
function intakeOf(guard: DurabilityGuard, heartbeat: Heartbeat): Pick<DurabilityGuard, "isDurable"> {
  return {
    get isDurable() {
      return guard.isDurable && heartbeat.writes.kind === "accepted";
    },
  };
}

function makePublicApp({ config, log, tracing, registry, drain }: Base, adapters: Adapters): Express {
  const { settings, publishers } = config;
  const { store, provider, pending, waiters, guard } = adapters;
  const { acknowledgments, injections } = store;
  const metrics = createGatewayMetrics(registry, {
    publishers,
    publishersMax: settings.METRICS_PUBLISHERS_MAX,
  });
  const startInjection = makeStartInjection({
    injections,
    provider,
    metrics,
    log,
    tracing,
    pending,
    drainSignal: drain.signal,
    ackDeadlineMs: settings.ACK_DEADLINE_MS,
  });
  const acknowledge = makeAcknowledge({
    acknowledgments,
    waiters,
    log,
    tracing,
    durability: guard,
    onAccepted: metrics.observeAccepted,
  });
  return createPublicApp({
    authenticate: makeAuthenticate({
      publishers,
      headers: settings.API_KEY_HEADERS,
      onKeyUse: ({ key }) => adapters.keyUses.note(key),
    }),
    keyHeaders: settings.API_KEY_HEADERS,
    readBody: makeReadBody(settings.BODY_LIMIT_BYTES),
    startInjection: makeStartInjectionHandler({
      startInjection,
      defaultTimeoutMs: settings.INJECTION_TIMEOUT_MS,
      fallbackAs: settings.INJECTION_FALLBACK,
    }),
    acknowledge: makeAcknowledgeHandler({ acknowledge, defaultWaitMs: settings.ACK_WAIT_MS }),
    lookUp: makeLookUpHandler(acknowledgments),
    metrics,
    tracing,
    log,
  });
}

interface AdminParts extends Adapters {
  readonly heartbeat: Heartbeat;
  readonly publishersWatch: PublishersWatch;
}

function makeOpsApp(
  { config, log, lifecycle, registry }: Base,
  parts: AdminParts & { readonly intake: Pick<DurabilityGuard, "isDurable"> },
): Express {
  const { redis, guard, intake, store, heartbeat } = parts;
  const loginGuard = new LoginGuard({ registry, log });
  const routes = makeAdminRouter(config, { ...parts, log, loginGuard });
  const ledger = store.metrics({
    listPublishers: () => config.publishers.current.map(({ id }) => id),
    publishersMax: config.settings.METRICS_PUBLISHERS_MAX,
  });
  return createOpsApp({
    collect: async () => ({ registry, scraped: await ledger.collect() }),
    checks: [{ name: "redis", check: async () => (await redis.ping()) === "PONG" && intake.isDurable }],
    warnings: () => ({ ...guard.warnings(), ...heartbeat.warnings() }),
    isStopping: () => lifecycle.isStopping,
    log,
    access: { settings: config.settings, listenHost: config.settings.GATEWAY_OPS_HOST, guard: loginGuard },
    ...(routes === undefined ? {} : { routes }),
  });
}

/** The admin API; undefined if no operator is configured. */
function makeAdminRouter(
  { operators, publishers }: GatewayConfig,
  parts: AdminParts & { readonly log: Logger; readonly loginGuard: LoginGuard },
): Router | undefined {
  if (operators.length === 0) {
    return undefined;
  }
  const { acknowledgments, deadLetters, adoptions, replays, discards, audit } = parts.store;
  const doctor = makeDoctor({ ...parts, publishers });
  const access = { operators, guard: parts.loginGuard, log: parts.log };
  return createAdminRouter(access, {
    ...parts,
    acknowledgments,
    deadLetters,
    adoptions,
    replays,
    discards,
    audit,
    publishers,
    doctor,
  });
}
