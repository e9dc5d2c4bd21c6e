/** Makes every part of the gateway and starts it. */
import {
  Admission,
  type CountOverload,
  createOverloadCounter,
  defaultQuotas,
  FILES_LOOK_INTERVAL_MS,
  type IntakeAdapters,
  makeAuthenticate,
  makeStartInjection,
  openIntakeStore,
  openRelayBase,
  PendingWork,
  type RelayBase,
  SessionHashes,
  startIntake,
  startPublicListener,
} from "@adrelay/relay-kit";
import {
  type Environment,
  makeReadBody,
  Periodic,
  type RunnableService,
  readBytesMax,
} from "@adrelay/service-kit";
import type { Express } from "express";
import { makeAcknowledge } from "./acknowledge/acknowledge.ts";
import { makeAcknowledgeHandler } from "./acknowledge/handler.ts";
import { OutcomeWaiters } from "./acknowledge/outcome-waiters.ts";
import { OperatorsWatch } from "./admin/operators-watch.ts";
import { startGatewayOps } from "./compose-ops.ts";
import type { GatewayConfig } from "./config.ts";
import { createGatewayMetrics, type GatewayMetrics } from "./gateway-metrics.ts";
import { makeRefuseInjection, makeStartInjectionHandler } from "./injection-handler.ts";
import { bytesInFlightMax } from "./limit-settings.ts";
import { makeLookUpHandler } from "./look-up.ts";
import { createPublicApp } from "./public-app.ts";

/** The share of a stop's time after which injections that still run get a fallback. */
const DRAIN_SHARE = 0.4;

export async function compose(config: GatewayConfig, env: Environment): Promise<RunnableService> {
  const { settings } = config;
  const base = { ...(await openRelayBase("gateway", config, env)), drain: new AbortController() };
  const { log, lifecycle, registry } = base;
  const adapters = await openAdapters(base);
  const operatorsWatch = await watchOperators(base);
  const metrics = createGatewayMetrics(registry, {
    publishers: config.publishers,
    publishersMax: settings.METRICS_PUBLISHERS_MAX,
  });
  const countOverload = createOverloadCounter(registry);
  const admission = makeAdmission(settings, { metrics, countOverload });
  const app = makePublicApp(base, { ...adapters, metrics, countOverload, admission });
  const intake = await startIntake(base, adapters);
  const opsServer = await startGatewayOps(base, { ...adapters, ...intake, metrics, operatorsWatch });
  const server = await startPublicListener(base, app, {
    host: settings.GATEWAY_HOST,
    port: settings.GATEWAY_PORT,
    limits: {
      keepAliveTimeoutMs: settings.KEEP_ALIVE_TIMEOUT_MS,
      connectionsMax: settings.GATEWAY_CONNECTIONS,
    },
    settings: "GATEWAY",
    calls: admission.calls,
    bytes: admission.bytes,
    onOverload: countOverload,
  });
  lifecycle.onStop("waiting callers", () => {
    adapters.waiters.stop();
    setTimeout(() => base.drain.abort(), settings.SHUTDOWN_TIMEOUT_MS * DRAIN_SHARE).unref();
  });
  return {
    log,
    lifecycle,
    shutdownDelayMs: settings.SHUTDOWN_DELAY_MS,
    shutdownTimeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    listening: { port: server.port, ops_port: opsServer.port },
    onHangUp: () => {
      intake.publishersWatch.onHangUp();
      operatorsWatch.onHangUp();
    },
  };
}

/** What the parts are made from. */
interface Base extends RelayBase<GatewayConfig> {
  /** Fires when injections that still run must end. */
  readonly drain: AbortController;
}

interface Adapters extends IntakeAdapters {
  readonly pending: PendingWork;
  readonly waiters: OutcomeWaiters;
}

async function openAdapters(base: Base): Promise<Adapters> {
  const { log, lifecycle } = base;
  const adapters = await openIntakeStore(base);
  const { subscriber, guard } = adapters;
  const pending = new PendingWork((err) => log.error({ event: "background_work_failed", err }));
  lifecycle.onStop("late answers", () => pending.stop());
  const waiters = new OutcomeWaiters(subscriber, () => !guard.forbidden.includes("publish"));
  // Redis may be away now; ioredis subscribes as soon as it is there.
  waiters.start().catch((err: unknown) => log.warn({ event: "subscribe_failed", err }));
  return { ...adapters, pending, waiters };
}

async function watchOperators({ config, log, lifecycle, registry }: Base): Promise<OperatorsWatch> {
  const watch = new OperatorsWatch({ directory: config.operators, registry, log });
  const onError = (err: unknown) => log.error({ event: "operators_look_failed", err });
  await lifecycle.start("operators", new Periodic(() => watch.look(), FILES_LOOK_INTERVAL_MS, onError));
  return watch;
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

function makePublicApp(
  { config, log, lifecycle, tracing, drain }: Base,
  parts: Adapters & PublicParts,
): Express {
  const { settings, publishers } = config;
  const { store, provider, pending, waiters, guard, metrics, admission, countOverload } = parts;
  const { acknowledgments, injections } = store;
  const startInjection = makeStartInjection({
    injections,
    provider,
    metrics,
    log,
    lifecycle,
    tracing,
    pending,
    drainSignal: drain.signal,
    ackDeadlineMs: settings.ACK_DEADLINE_MS,
  });
  const acknowledge = makeAcknowledge({
    acknowledgments,
    waiters,
    log,
    lifecycle,
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
    readBytesMax: readBytesMax(settings.BODY_LIMIT_BYTES),
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
