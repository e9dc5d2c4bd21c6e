/** Makes the listener of operators: metrics, health, and the admin API. */
import { proxiesOf } from "@adrelay/provider";
import {
  type IntakeAdapters,
  loadModelTls,
  type PublishersWatch,
  type RelayBase,
  SessionHashes,
} from "@adrelay/relay-kit";
import {
  createOpsApp,
  type DurabilityGuard,
  type HttpServer,
  LoginGuard,
  serveApiDocument,
  startHttpServer,
} from "@adrelay/service-kit";
import type { Heartbeat } from "@adrelay/store";
import type { Express, Router } from "express";
import { makeDoctor } from "./admin/doctor.ts";
import type { OperatorsWatch } from "./admin/operators-watch.ts";
import { createAdminRouter } from "./admin/router.ts";
import type { GatewayConfig } from "./config.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";

/** Scrapers, probes and operators together need a few dozen. */
const OPS_CONNECTIONS_MAX = 256;

export interface OpsParts extends IntakeAdapters {
  readonly metrics: GatewayMetrics;
  readonly heartbeat: Heartbeat;
  readonly publishersWatch: PublishersWatch;
  readonly operatorsWatch: OperatorsWatch;
  /** Whether acknowledgments are accepted now, as far as Redis is concerned. */
  readonly intake: Pick<DurabilityGuard, "isDurable">;
}

/** Stops last, so that the stop can be watched. */
export async function startOpsListener(base: RelayBase<GatewayConfig>, parts: OpsParts): Promise<HttpServer> {
  const { config, lifecycle, log } = base;
  const server = await startHttpServer(makeOpsApp(base, parts), {
    name: "the gateway's ops listener",
    host: config.settings.GATEWAY_OPS_HOST,
    port: config.settings.GATEWAY_OPS_PORT,
    log,
    limits: { connectionsMax: OPS_CONNECTIONS_MAX },
  });
  lifecycle.onStopLast("ops listener", (signal) => server.stop(signal));
  return server;
}

function makeOpsApp(
  { config, log, lifecycle, registry }: RelayBase<GatewayConfig>,
  parts: OpsParts,
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

/** The admin API; undefined if no operator is configured, and no file that may name some. */
function makeAdminRouter(
  { operators, publishers, settings }: GatewayConfig,
  parts: OpsParts & Pick<RelayBase, "log"> & { readonly loginGuard: LoginGuard },
): Router | undefined {
  if (operators.current.length === 0 && settings.OPERATORS_FILE === undefined) {
    return undefined;
  }
  const { acknowledgments, deadLetters, adoptions, keyUses, erasures, rewrites, audit } = parts.store;
  const { replays, discards, queuedDiscards } = parts.store;
  const models = {
    openai: settings.OPENAI_BASE_URL,
    anthropic: settings.ANTHROPIC_BASE_URL,
    proxies: proxiesOf(settings),
    loadTls: () => loadModelTls(settings),
  };
  const doctor = makeDoctor({ ...parts, publishers, models });
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
    queuedDiscards,
    audit,
    publishers,
    doctor,
  });
}
