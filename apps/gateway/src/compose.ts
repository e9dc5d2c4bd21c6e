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
  serveApiDocument,
  startHttpServer,
  type Tracing,
} from "@adrelay/service-kit";
import { type Heartbeat, loadMissingRights, openStore, type Store } from "@adrelay/store";
import type { Express, Router } from "express";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { makeAcknowledge } from "./acknowledge/acknowledge.ts";
import { makeAcknowledgeHandler } from "./acknowledge/handler.ts";
import { intakeRulesOf } from "./acknowledge/intake-rules.ts";
import { OutcomeWaiters } from "./acknowledge/outcome-waiters.ts";
import { makeDoctor } from "./admin/doctor.ts";
import { createAdminRouter } from "./admin/router.ts";
import { Admission } from "./admission/admission.ts";
import { type CountOverload, createOverloadCounter, reportInFlight } from "./admission/in-flight-metrics.ts";
import { bytesInFlightMax } from "./admission/limit-settings.ts";
import type { GatewayConfig } from "./config.ts";
import { createGatewayMetrics, type GatewayMetrics } from "./gateway-metrics.ts";
import { makeRefuseInjection, makeStartInjectionHandler } from "./injection/handler.ts";
import { makeStartInjection } from "./injection/start-injection.ts";
import { PendingWork } from "./injection/waits.ts";
import { makeLookUpHandler } from "./look-up.ts";
import { createPublicApp, makeAuthenticate } from "./public-app.ts";
import { defaultQuotas } from "./quota-settings.ts";
import { SessionHashes } from "./session-hashes.ts";

/** The share of a stop's time after which injections that still run get a fallback. */
const DRAIN_SHARE = 0.4;
/** Scrapers, probes and operators together need a few dozen. */
const OPS_CONNECTIONS_MAX = 256;
/** How often Redis is asked how full it is. */
const ROOM_INTERVAL_MS = 1000;

export async function compose(config: GatewayConfig, env: Environment): Promise<RunnableService> {
  const { settings } = config;
  const log = createLogger("gateway", settings.LOG_LEVEL);
  const lifecycle = new Lifecycle(log);
  const tracing = await openTracing({ service: "adrelay-gateway", env, log });
  lifecycle.onStopLast("traces", () => tracing.stop());
  const base = { config, log, lifecycle, tracing, registry: createRegistry(), drain: new AbortController() };
  const adapters = await openAdapters(base);
  const publishersWatch = await watchPublishers(base);
  const metrics = createGatewayMetrics(base.registry, {
    publishers: config.publishers,
    publishersMax: settings.METRICS_PUBLISHERS_MAX,
  });
  const countOverload = createOverloadCounter(base.registry);
  const admission = makeAdmission(settings, { metrics, countOverload });
  const app = makePublicApp(base, { ...adapters, metrics, countOverload, admission });
  const heartbeat = adapters.store.heartbeat({
    identity: { role: "gateway", ...describeProcess() },
    publishersFile: () => publishersWatch.state,
    registry: base.registry,
    subscriber: adapters.subscriber,
  });
  await lifecycle.start("heartbeat", new PeriodicHeartbeat(heartbeat));
  await lifecycle.start("uses of keys", makeKeyUseSaver(adapters.store.keyUses, { heartbeat, log }));
  const intake = intakeOf(adapters, heartbeat);
  reportDurability(base.registry, intake);
  reportMemory(base.registry, adapters.guard);
  const opsApp = makeOpsApp(base, { ...adapters, metrics, heartbeat, intake, publishersWatch });
  const opsServer = await startHttpServer(opsApp, {
    name: "the gateway's ops listener",
    host: settings.GATEWAY_OPS_HOST,
    port: settings.GATEWAY_OPS_PORT,
    log,
    limits: { connectionsMax: OPS_CONNECTIONS_MAX },
  });
  // It stops last, so that the stop can be watched.
  lifecycle.onStopLast("ops listener", (signal) => opsServer.stop(signal));
  const server = await startHttpServer(app, {
    name: "the gateway",
    host: settings.GATEWAY_HOST,
    port: settings.GATEWAY_PORT,
    log,
    limits: {
      keepAliveTimeoutMs: settings.KEEP_ALIVE_TIMEOUT_MS,
      connectionsMax: settings.GATEWAY_CONNECTIONS,
    },
    onNoRoom: () => countOverload("connections"),
    isStopping: () => lifecycle.isStopping,
  });
  reportInFlight(base.registry, {
    calls: admission.calls,
    bytes: admission.bytes,
    connections: () => server.connections,
    connectionsMax: settings.GATEWAY_CONNECTIONS,
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

async function openAdapters({ config: { settings, publishers }, log, lifecycle }: Base) {
  const target = redisTargetOf(settings);
  const redis = connectRedis(target, "request", log);
  lifecycle.onStop("redis", () => redis.disconnect());
  const rules = { mode: settings.REDIS_DURABILITY, loadMissingRights: () => loadMissingRights(redis) };
  const guard = await guardRedis(redis, rules, log);
  const subscriber = connectRedis(target, "subscriber", log);
  lifecycle.onStop("redis subscriber", () => subscriber.disconnect());
  const intakeDefaults = { unknownAck: settings.UNKNOWN_ACK, quotas: defaultQuotas(settings) };
  const store = openStore({
    redis,
    recordRetentionMs: settings.RECORD_RETENTION,
    deliveredRetentionMs: settings.DELIVERED_RETENTION,
    intakeRules: (id) => rulesOf(id),
    log,
    isStopping: () => lifecycle.isStopping,
  });
  const rulesOf = (id: string) => intakeRulesOf(publishers.find(id), intakeDefaults, store.room.memory);
  lifecycle.onStop("queue", () => store.stop());
  // If Redis doesn't answer, the connection logs it.
  const room = new Periodic(
    () => store.room.refresh(),
    ROOM_INTERVAL_MS,
    () => {},
  );
  await lifecycle.start("room", room);
  const provider = new ProviderClient(proxiesOf(settings));
  lifecycle.onStop("provider", () => provider.stop());
  const pending = new PendingWork((err) => log.error({ event: "background_work_failed", err }));
  lifecycle.onStop("late answers", () => pending.stop());
  const waiters = new OutcomeWaiters(subscriber, () => !guard.forbidden.includes("publish"));
  // Redis may be away now; ioredis subscribes as soon as it is there.
  waiters.start().catch((err: unknown) => log.warn({ event: "subscribe_failed", err }));
  return { redis, subscriber, guard, store, rulesOf, provider, pending, waiters };
}

const SAVE_KEY_USES_INTERVAL_MS = 1000;

/**
 * Nobody waits for it, and what Redis doesn't take is saved later. While Redis refuses the heartbeat, only that is tried: each
 * refused write may replace the connection, and with it the answer to the heartbeat would be lost.
 */
function makeKeyUseSaver(
  keyUses: Pick<Store["keyUses"], "save">,
  { heartbeat, log }: { readonly heartbeat: Heartbeat; readonly log: Logger },
): Periodic {
  const onError = (err: unknown) => log.debug({ event: "key_uses_not_saved", err });
  const save = async () => {
    if (heartbeat.writes.kind === "accepted") {
      await keyUses.save();
    }
  };
  return new Periodic(save, SAVE_KEY_USES_INTERVAL_MS, onError);
}

/** Keeps the publishers and keys as their files are. */
async function watchPublishers({ config, log, lifecycle, registry }: Base): Promise<PublishersWatch> {
  const watch = new PublishersWatch({ directory: config.publishers, log, registry });
  const onError = (err: unknown) => log.error({ event: "publishers_look_failed", err });
  await lifecycle.start("publishers", new Periodic(() => watch.look(), PUBLISHERS_LOOK_INTERVAL_MS, onError));
  return watch;
}

/** Whether Redis keeps an acknowledgment now: it is durable, and has taken the latest heartbeat with room for more. */
function intakeOf(
  { guard, store }: Pick<Adapters, "guard" | "store">,
  heartbeat: Heartbeat,
): Pick<DurabilityGuard, "isDurable"> {
  return {
    get isDurable() {
      return guard.isDurable && heartbeat.writes.kind === "accepted" && store.room.accepts !== "none";
    },
  };
}

function makeAdmission(
  settings: GatewayConfig["settings"],
  { metrics, countOverload }: Pick<PublicParts, "metrics" | "countOverload">,
): Admission {
  return new Admission({
    quotas: defaultQuotas(settings),
    callsMax: settings.GATEWAY_CALLS_IN_FLIGHT,
    bytesMax: bytesInFlightMax(settings),
    onRefused: ({ id }, refusal) =>
      refusal.kind === "over_quota"
        ? metrics.countOverQuota(id, refusal.quota)
        : countOverload(refusal.limit),
  });
}

/** What the public listener needs besides the adapters. */
interface PublicParts {
  readonly metrics: GatewayMetrics;
  readonly countOverload: CountOverload;
  readonly admission: Admission;
}

function makePublicApp({ config, log, tracing, drain }: Base, parts: Adapters & PublicParts): Express {
  const { settings, publishers } = config;
  const { store, provider, pending, waiters, guard, metrics, admission, countOverload } = parts;
  const { acknowledgments, injections } = store;
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
    onOverQuota: metrics.countOverQuota,
  });
  return createPublicApp({
    authenticate: makeAuthenticate({
      publishers,
      headers: settings.API_KEY_HEADERS,
      onKeyUse: ({ key }) => store.keyUses.note(key),
    }),
    keyHeaders: settings.API_KEY_HEADERS,
    readBody: makeReadBody(settings.BODY_LIMIT_BYTES),
    admission,
    countOverload,
    refuseInjection: makeRefuseInjection(settings.INJECTION_FALLBACK, metrics),
    startInjection: makeStartInjectionHandler({
      startInjection,
      defaultTimeoutMs: settings.INJECTION_TIMEOUT_MS,
      fallbackAs: settings.INJECTION_FALLBACK,
      sessionHashes: new SessionHashes(settings.SESSION_HASH_KEYS ?? []),
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
  parts: Adapters & AdminParts & { readonly intake: Pick<DurabilityGuard, "isDurable"> },
): Express {
  const { redis, guard, intake, store, heartbeat } = parts;
  const loginGuard = new LoginGuard({ registry, log });
  const routes = makeAdminRouter(config, { ...parts, log, loginGuard });
  const ledger = store.metrics({
    listPublishers: () => config.publishers.current.map(({ id }) => id),
    publishersMax: config.settings.METRICS_PUBLISHERS_MAX,
    limitsOf: (publisher) => parts.rulesOf(publisher).limits,
  });
  return createOpsApp({
    collect: async () => ({ registry, scraped: await ledger.collect() }),
    checks: [{ name: "redis", check: async () => (await redis.ping()) === "PONG" && intake.isDurable }],
    warnings: () => ({ ...guard.warnings(), ...heartbeat.warnings(), ...store.room.warnings() }),
    isStopping: () => lifecycle.isStopping,
    log,
    access: { settings: config.settings, listenHost: config.settings.GATEWAY_OPS_HOST, guard: loginGuard },
    document: serveApiDocument("admin"),
    ...(routes === undefined ? {} : { routes }),
  });
}

interface AdminParts {
  readonly heartbeat: Heartbeat;
  readonly metrics: GatewayMetrics;
}

/** The admin API; undefined if no operator is configured. */
function makeAdminRouter(
  { operators, publishers, settings }: GatewayConfig,
  parts: Adapters & AdminParts & { readonly log: Logger; readonly loginGuard: LoginGuard },
): Router | undefined {
  if (operators.length === 0) {
    return undefined;
  }
  const { acknowledgments, deadLetters, adoptions, keyUses, erasures, rewrites, replays, discards, audit } =
    parts.store;
  const doctor = makeDoctor({ ...parts, publishers });
  const access = { operators, guard: parts.loginGuard, log: parts.log };
  return createAdminRouter(access, {
    ...parts,
    acknowledgments,
    deadLetters,
    adoptions,
    keyUses,
    erasures,
    rewrites,
    sessionHashes: new SessionHashes(settings.SESSION_HASH_KEYS ?? []),
    replays,
    discards,
    audit,
    publishers,
    doctor,
  });
}
