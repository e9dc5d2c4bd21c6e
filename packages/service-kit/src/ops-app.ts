import { pipeline } from "node:stream/promises";
import { INJECTION_READINESS_PATH, READINESS_PATH, type Readiness } from "@adrelay/contract";
import express, { type Express, type RequestHandler, type Router } from "express";
import type { Logger } from "pino";
import { API_DOCUMENT_PATH } from "./api-document.ts";
import { OVERDUE, withDeadline } from "./deadline.ts";
import { answerErrors, methodNotAllowed, notFound } from "./express/json-http.ts";
import { assignRequestId } from "./http-app.ts";
import { type CollectedMetrics, renderMetrics } from "./metrics.ts";
import { type OpsAccess, requireMetricsToken, secureOpsApp } from "./ops-access.ts";

/** A dependency that `/readyz` names. Its check resolves to true if the dependency can be used. */
interface ReadinessCheck {
  readonly name: string;
  /** What the process does less well without the dependency. If it is given, the process is ready without it, and warns. */
  readonly warning?: string;
  check(): Promise<boolean>;
}

/** What an ops listener serves. */
export interface OpsOptions {
  /** Returns everything that `/metrics` shows; called at each scrape. */
  collect(): Promise<CollectedMetrics>;
  readonly checks: readonly ReadinessCheck[];
  /** The checks of readiness for injections alone, if it has an address of its own. */
  readonly injectionChecks?: readonly ReadinessCheck[];
  /** What a person should know although the process is ready, by name. */
  warnings?(): Readonly<Record<string, string>>;
  /** True while the process stops. Readiness then fails, before anything else stops. */
  isStopping(): boolean;
  readonly log: Logger;
  readonly access: OpsAccess;
  /** Sends the listener's OpenAPI document. */
  readonly document?: RequestHandler;
  /** Further routes of the same listener. */
  readonly routes?: Router;
  /** How long a scraper may take to read the metrics; default: 60 s. Then its connection is cut. */
  readonly scrapeTimeoutMs?: number;
}

/** Scrapers, probes and operators together need a few dozen connections. */
export const OPS_LISTENER_LIMITS = { connectionsMax: 256 };

const CHECK_TIMEOUT_MS = 1000;
/** As long as the listener waits for any other answer to be read. Prometheus gives up after ten seconds by default. */
const SCRAPE_TIMEOUT_MS = 60_000;

/** Makes the app of an ops listener: metrics, health of the process, and readiness with each dependency by name. */
export function createOpsApp(options: OpsOptions): Express {
  const { collect, log, access, injectionChecks, document, routes } = options;
  const { scrapeTimeoutMs = SCRAPE_TIMEOUT_MS } = options;
  const app = express();
  app.disable("x-powered-by");
  // No answer is kept anywhere, so none can be asked for again by its ETag.
  app.disable("etag");
  app.use(assignRequestId);
  secureOpsApp(app, access);
  const onlyGet = methodNotAllowed("GET", "HEAD");
  const sendHealth: RequestHandler = (_request, response) => {
    response.json({ status: "ok" });
  };
  const sendMetrics: RequestHandler = async (request, response) => {
    const { contentType, pieces } = renderMetrics(await collect(), request.get("Accept"));
    response.set({ "Content-Type": contentType, Vary: "Accept" });
    // While this waits for the scraper, the listener takes it for a handler at work, which it never cuts off.
    const signal = AbortSignal.timeout(scrapeTimeoutMs);
    await pipeline(pieces, response, { signal }).catch((err: unknown) => {
      // The scraper sees a broken answer. Usually it has hung up.
      log.debug({ event: "scrape_failed", err });
    });
  };
  app.route("/healthz").get(sendHealth).all(onlyGet);
  app.route(READINESS_PATH).get(makeReadinessHandler(options)).all(onlyGet);
  if (injectionChecks !== undefined) {
    const ready = makeReadinessHandler({ ...options, checks: injectionChecks });
    app.route(INJECTION_READINESS_PATH).get(ready).all(onlyGet);
  }
  app.route("/metrics").get(requireMetricsToken(access), sendMetrics).all(onlyGet);
  if (document !== undefined) {
    app.route(API_DOCUMENT_PATH).get(document).all(onlyGet);
  }
  if (routes !== undefined) {
    app.use(routes);
  }
  app.use(notFound());
  app.use(answerErrors(log));
  return app;
}

function makeReadinessHandler({ checks, warnings, isStopping }: OpsOptions): RequestHandler {
  return async (_request, response) => {
    const results = await Promise.all(checks.map(runCheck));
    const needed = results.filter(({ warning }) => warning === undefined);
    const isReady = !isStopping() && needed.every(({ isOk }) => isOk);
    const missing = results.flatMap(({ name, warning, isOk }) =>
      warning === undefined || isOk ? [] : [[name, warning]],
    );
    const warned = { ...warnings?.(), ...Object.fromEntries(missing) };
    const readiness: Readiness = {
      status: isReady ? "ready" : "not_ready",
      stopping: isStopping(),
      checks: Object.fromEntries(needed.map(({ name, isOk }) => [name, isOk ? "ok" : "failing"])),
      ...(Object.keys(warned).length === 0 ? {} : { warnings: warned }),
    };
    response.status(isReady ? 200 : 503).json(readiness);
  };
}

async function runCheck(each: ReadinessCheck): Promise<ReadinessCheck & { readonly isOk: boolean }> {
  const result = await withDeadline(
    each.check().catch(() => false),
    CHECK_TIMEOUT_MS,
  );
  return { ...each, isOk: result !== OVERDUE && result };
}
