import { collectWithLedger, Ledger, type Pulse, Taker } from "@adrelay/ledger";
import { ProviderClient } from "@adrelay/provider";
import { DeliveryQueue } from "@adrelay/queue";
import {
  connectRedis,
  createLogger,
  createOpsApp,
  createRegistry,
  type Environment,
  guardRedis,
  Lifecycle,
  makeReadBody,
  openTracing,
  type RunnableService,
  reportDurability,
  startHttpServer,
  type Tracing,
} from "@adrelay/service-kit";
import type { Express } from "express";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { makeAuthenticate } from "./auth/authenticate.ts";
import { composeAdmin } from "./compose-admin.ts";
import type { GatewayConfig } from "./config.ts";
import { makeIntake, takeInTime } from "./intake/intake.ts";
import { OutcomeWaiters } from "./intake/outcome-waiters.ts";
import { createGatewayMetrics } from "./metrics/gateway-metrics.ts";
import { PendingWork } from "./pending-work.ts";
import { createPublicApp } from "./public-app.ts";
import { startPulse } from "./pulse.ts";
import { makeAcknowledge } from "./routes/acknowledge/acknowledge.ts";
import { makeAcknowledgeHandler } from "./routes/acknowledge/handler.ts";
import { makeLookUpHandler } from "./routes/look-up/handler.ts";
import { makeStartInjectionHandler } from "./routes/start-injection/handler.ts";
import { makeStartInjection } from "./routes/start-injection/start-injection.ts";

/** The share of a stop's time after which injections that still run get a fallback. */
const HURRY_SHARE = 0.4;

/** Makes every part of the gateway and starts it. */
export async function compose(config: GatewayConfig, env: Environment): Promise<RunnableService> {
  const { settings } = config;
  const log = createLogger("gateway", settings.LOG_LEVEL);
  const lifecycle = new Lifecycle(log);
  const tracing = await openTracing({ service: "adrelay-gateway", env, log });
  lifecycle.onStopLast("traces", () => tracing.stop());
  const base = { config, log, lifecycle, tracing, registry: createRegistry(), hurry: new AbortController() };
  const adapters = await openAdapters(base);
  const app = makePublicApp(base, adapters);
  const pulse = startPulse(base, adapters.redis);
  const opsServer = await startHttpServer(makeOpsApp(base, { ...adapters, pulse }), {
    name: "the gateway's ops listener",
    host: settings.GATEWAY_OPS_HOST,
    port: settings.GATEWAY_OPS_PORT,
  });
  // Last, so that it can be seen how the stop goes.
  lifecycle.onStopLast("ops listener", (signal) => opsServer.stop(signal));
  const server = await startHttpServer(app, {
    name: "the gateway",
    host: settings.GATEWAY_HOST,
    port: settings.GATEWAY_PORT,
  });
  lifecycle.onStop("listener", (signal) => server.stop(signal));
  lifecycle.onStop("waiting callers", () => {
    adapters.waiters.stop();
    setTimeout(() => base.hurry.abort(), settings.SHUTDOWN_TIMEOUT_MS * HURRY_SHARE).unref();
  });
  const listening = { port: server.port, ops_port: opsServer.port };
  return { log, lifecycle, shutdownTimeoutMs: settings.SHUTDOWN_TIMEOUT_MS, listening };
}

/** What every part is made with. */
interface Base {
  readonly config: GatewayConfig;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly tracing: Tracing;
  readonly registry: Registry;
  /** Fires when injections that still run must end. */
  readonly hurry: AbortController;
}

type Adapters = Awaited<ReturnType<typeof openAdapters>>;

async function openAdapters({ config: { settings }, log, lifecycle, registry }: Base) {
  const redis = connectRedis(settings.REDIS_URL, "request", log);
  lifecycle.onStop("redis", () => redis.disconnect());
  const guard = await guardRedis(redis, settings.REDIS_DURABILITY, log);
  reportDurability(registry, guard);
  const subscriber = connectRedis(settings.REDIS_URL, "subscriber", log);
  lifecycle.onStop("redis subscriber", () => subscriber.disconnect());
  const ledger = new Ledger({ redis, recordRetentionMs: settings.RECORD_RETENTION });
  const queue = new DeliveryQueue({ redis });
  lifecycle.onStop("queue", () => queue.close());
  const takesUnknown = settings.UNKNOWN_ACK === "accept";
  const taker = new Taker({ redis, insertion: queue.insertion(), takesUnknown, inTime: takeInTime });
  const provider = new ProviderClient();
  lifecycle.onStop("provider", () => provider.close());
  const pending = new PendingWork((err) => log.error({ event: "background_work_failed", err }));
  lifecycle.onStop("late answers", () => pending.settled());
  const waiters = new OutcomeWaiters(subscriber);
  // Redis may be away now; ioredis subscribes as soon as it is there.
  waiters.start().catch((err: unknown) => log.warn({ event: "subscribe_failed", err }));
  return { redis, guard, ledger, queue, taker, provider, pending, waiters };
}

function makePublicApp({ config, log, tracing, registry, hurry }: Base, adapters: Adapters): Express {
  const { settings, publishers } = config;
  const { ledger, queue, taker, provider, pending, waiters, guard } = adapters;
  const metrics = createGatewayMetrics(
    registry,
    publishers.map(({ id }) => id),
  );
  const intake = makeIntake({
    taker,
    queue,
    log,
    tracing,
    isDurable: () => guard.isDurable,
    onAccepted: metrics.noteAccepted,
  });
  const ackDeadlineMs = settings.ACK_DEADLINE_MS;
  return createPublicApp({
    authenticate: makeAuthenticate(publishers, settings.API_KEY_HEADERS),
    keyHeaders: settings.API_KEY_HEADERS,
    readBody: makeReadBody(settings.BODY_LIMIT_BYTES),
    startInjection: makeStartInjectionHandler({
      startInjection: makeStartInjection({
        ledger,
        provider,
        metrics,
        log,
        tracing,
        pending,
        hurry: hurry.signal,
        ackDeadlineMs,
      }),
      defaultTimeoutMs: settings.INJECTION_TIMEOUT_MS,
      fallbackAs: settings.INJECTION_FALLBACK,
    }),
    acknowledge: makeAcknowledgeHandler({
      acknowledge: makeAcknowledge({ intake, waiters, ledger }),
      defaultWaitMs: settings.ACK_WAIT_MS,
    }),
    lookUp: makeLookUpHandler(ledger),
    metrics,
    tracing,
    log,
  });
}

function makeOpsApp(
  { config, log, lifecycle, registry }: Base,
  adapters: Adapters & { readonly pulse: Pulse },
): Express {
  const { redis, guard, ledger, queue, pulse } = adapters;
  const routes = composeAdmin(config, { ...adapters, log });
  return createOpsApp({
    collect: () =>
      collectWithLedger(registry, {
        ledger,
        publishers: config.publishers.map(({ id }) => id),
        queueDepths: () => queue.counts(),
      }),
    checks: [{ name: "redis", check: async () => (await redis.ping()) === "PONG" && guard.isDurable }],
    warnings: () => pulse.warnings(),
    isStopping: () => lifecycle.isStopping,
    log,
    ...(routes === undefined ? {} : { routes }),
  });
}
