/** Makes the listener of operators: metrics, health, and the admin API. */
import { proxiesOf } from "@adrelay/provider";
import {
  type IntakeAdapters,
  type IntakeParts,
  loadModelTls,
  type RelayBase,
  SessionHashes,
  startOpsListener,
} from "@adrelay/relay-kit";
import { type HttpServer, LoginGuard, serveApiDocument } from "@adrelay/service-kit";
import type { Router } from "express";
import { makeDoctor } from "./admin/doctor.ts";
import type { OperatorsWatch } from "./admin/operators-watch.ts";
import { createAdminRouter } from "./admin/router.ts";
import type { GatewayConfig } from "./config.ts";
import type { GatewayMetrics } from "./gateway-metrics.ts";

interface OpsParts extends IntakeAdapters, IntakeParts {
  readonly metrics: GatewayMetrics;
  readonly operatorsWatch: OperatorsWatch;
}

/** Starts the listener with the admin API. */
export function startGatewayOps(base: RelayBase<GatewayConfig>, parts: OpsParts): Promise<HttpServer> {
  const { config, log, registry } = base;
  const loginGuard = new LoginGuard({ registry, log });
  const routes = makeAdminRouter(config, { ...parts, log, loginGuard });
  return startOpsListener(base, parts, {
    host: config.settings.GATEWAY_OPS_HOST,
    port: config.settings.GATEWAY_OPS_PORT,
    loginGuard,
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
