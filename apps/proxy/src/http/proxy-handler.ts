/**
 * The public listener: what it does with each request before it goes upstream. Not Express: most calls only pass through, and
 * its layers would be most of what they cost.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Publisher } from "@adrelay/provider";
import type { Caller } from "@adrelay/relay-kit";
import { headerOf } from "@adrelay/service-kit";
import type { Logger } from "pino";
import type { ProxyMetrics } from "../proxy-metrics.ts";
import type { PrepareCall, PreparedCall } from "./call.ts";
import { CallReport, type ReportDeps } from "./call-report.ts";
import type { HeldBody, ProxyRoom } from "./call-room.ts";
import { upstreamHeaders } from "./headers.ts";
import type { OpenCalls, WatchedCall } from "./open-calls.ts";
import { OWN_ERRORS, sendNotFound, sendOwnError } from "./own-errors.ts";
import { RelayedCall } from "./relayed-call.ts";
import { hasBody, readSurfaceBody, type SurfaceBody, streamBody } from "./request-body.ts";
import { type Target, targetOf } from "./targets.ts";
import type { Upstreams } from "./upstreams.ts";

export interface ProxyHandlerDeps extends ReportDeps {
  /** The publisher whose key a request has; undefined without a valid one. */
  readonly authenticate: (request: IncomingMessage) => Publisher | undefined;
  /** Where a key may be sent. */
  readonly keyHeaders: readonly string[];
  readonly prepareCall: PrepareCall;
  readonly upstreams: Pick<Upstreams, "find">;
  readonly openCalls: OpenCalls;
  readonly room: ProxyRoom;
  /** A longer body of a surface gets no ad. */
  readonly editLimitBytes: number;
  readonly metrics: ProxyMetrics;
  readonly log: Logger;
}

/** A call with a valid key. */
interface KnownCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly report: CallReport;
  readonly target: Target;
  readonly publisher: Publisher;
}

/** Makes the handler of the public listener. */
export function makeProxyHandler(deps: ProxyHandlerDeps): RequestListener {
  const keyNames = deps.keyHeaders.map((name) => name.toLowerCase());
  const parts = { ...deps, keyNames: new Set(keyNames) };
  return (request, response) => {
    try {
      handle(parts, request, response);
    } catch (err) {
      giveUp(parts, response, err);
    }
  };
}

function handle(parts: Parts, request: IncomingMessage, response: ServerResponse): void {
  const report = new CallReport(parts, request);
  const target = targetOf(request);
  if (target === undefined) {
    report.outcome = "refused";
    response.once("close", () => report.finish(response));
    sendNotFound(response, report.requestId);
    return;
  }
  report.path = target.surface?.name ?? "other";
  report.upstream = target.upstream;
  const publisher = parts.authenticate(request);
  report.publisher = publisher?.id;
  parts.metrics.countKey(publisher !== undefined);
  const refusal = refusalOf(parts, { request, response, publisher });
  if (publisher === undefined || refusal !== undefined) {
    refuse({ response, report, target }, refusal ?? "unauthenticated", parts.keyHeaders);
    return;
  }
  const call = { request, response, report, target, publisher };
  if (target.surface === undefined) {
    passThrough(parts, call);
  } else {
    relaySurface(parts, call).catch((err: unknown) => giveUp(parts, response, err));
  }
}

/** A bug in one call must not end the others. */
function giveUp({ log }: Parts, response: ServerResponse, err: unknown): void {
  log.error({ event: "proxy_call_failed", err });
  response.destroy();
}

type Refusal = "unauthenticated" | "upgrade" | "overloaded";

function refusalOf(
  { room }: ProxyHandlerDeps,
  {
    request,
    response,
    publisher,
  }: Pick<KnownCall, "request" | "response"> & { publisher: Publisher | undefined },
): Refusal | undefined {
  if (publisher === undefined) {
    return "unauthenticated";
  }
  // Clients for HTTP/2 offer h2c with ordinary requests, and may be answered in HTTP/1.1 (RFC 9113, section 3.1).
  const upgrade = request.headers.upgrade;
  if (upgrade !== undefined && upgrade.toLowerCase() !== "h2c") {
    return "upgrade";
  }
  return room.admit(publisher, response) ? undefined : "overloaded";
}

function refuse(
  { response, report, target }: Pick<KnownCall, "response" | "report" | "target">,
  refusal: Refusal,
  keyHeaders: readonly string[],
): void {
  report.outcome = "refused";
  report.cause = refusal;
  response.once("close", () => report.finish(response));
  const { message, ...error } = OWN_ERRORS[refusal];
  const text = refusal === "unauthenticated" ? `${message} ${keyHeaders.join(" or ")}` : message;
  // An upgrade's connection speaks something else from now on.
  const headers = refusal === "upgrade" ? ["Connection", "close"] : [];
  const { requestId } = report;
  sendOwnError(response, {
    dialect: target.errorsOf,
    error: { ...error, message: text },
    requestId,
    headers,
  });
}

type Parts = ProxyHandlerDeps & { readonly keyNames: ReadonlySet<string> };

/** What was read of a body before it passes, and the room that it has. */
interface HeadOfBody {
  readonly head: readonly Buffer[];
  readonly held: HeldBody | undefined;
}

const NO_HEAD: HeadOfBody = { head: [], held: undefined };

/** Sends a call as it comes. What was read of its body before is in memory until the model's server takes it. */
function passThrough(parts: Parts, call: KnownCall, { head, held }: HeadOfBody = NO_HEAD): void {
  const { request } = call;
  const length = request.headers["content-length"];
  const release = () => held?.release();
  const relayed = openCall(parts, call, {
    headers: length === undefined ? [] : ["Content-Length", length],
    onBodySent: release,
  });
  const onPiece = () => {
    relayed.hasMoved = true;
  };
  const passing = { head, onPiece, onHeadTaken: release };
  relayed.start(hasBody(request) ? streamBody(request, passing) : undefined);
}

/** Reads the body of a surface, asks for an ad, and sends the call. */
async function relaySurface(parts: Parts, call: KnownCall): Promise<void> {
  const { response, report, publisher } = call;
  const held = parts.room.openBody(publisher);
  const read = await readWatched(parts, call, held);
  switch (read.kind) {
    case "cut":
      held.release();
      report.finish(response);
      return;
    case "too_large":
    case "not_held":
      report.ad = { state: "skipped", reason: read.kind === "too_large" ? "too_large" : "overloaded" };
      passThrough(parts, call, { head: read.head, held });
      return;
    case "whole":
      await enhance(parts, call, { body: read.body, held });
      return;
    default:
      read satisfies never;
  }
}

/** A body that no longer comes isn't waited for. */
async function readWatched(parts: Parts, call: KnownCall, held: HeldBody): Promise<SurfaceBody> {
  const { request } = call;
  const watched: WatchedCall = {
    hasMoved: false,
    idleSinceMs: 0,
    end: (outcome) => giveBodyUp(call, outcome),
  };
  parts.openCalls.add(watched);
  try {
    return await readSurfaceBody(request, {
      bytesMax: parts.editLimitBytes,
      hold: (bytes) => {
        watched.hasMoved = true;
        return held.hold(bytes);
      },
    });
  } finally {
    parts.openCalls.remove(watched);
  }
}

function giveBodyUp({ request, response, report, target }: KnownCall, outcome: "idle" | "stopped"): void {
  report.outcome = outcome;
  if (outcome === "stopped") {
    response.destroy();
    return;
  }
  const { requestId } = report;
  // What would come now belongs to this request.
  response.once("finish", () => request.destroy());
  sendOwnError(response, {
    dialect: target.errorsOf,
    error: OWN_ERRORS.slow_body,
    requestId,
    headers: ["Connection", "close"],
  });
}

async function enhance(
  parts: Parts,
  call: KnownCall,
  { body, held }: { readonly body: Buffer; readonly held: HeldBody },
): Promise<void> {
  const { report } = call;
  report.bodyAtMs = performance.now();
  const prepared = await prepare(parts, call, body);
  report.ad = prepared.ad;
  report.adResponseId = prepared.adResponseId;
  // The enhanced body stands beside the original until the model's server has taken one of them.
  const isEnhanced = prepared.body !== body;
  openCall(parts, call, {
    headers: [],
    step: prepared.step,
    onBodySent: () => held.release(),
  }).start(prepared.body, isEnhanced ? body : undefined);
}

/** Asks for an ad. A bug there costs the ad, not the answer. */
async function prepare(parts: Parts, call: KnownCall, body: Buffer): Promise<PreparedCall> {
  const { request, response, report, publisher, target } = call;
  const caller: { isGone: boolean; onGone: Caller["onGone"] } = { isGone: false, onGone: undefined };
  const onClose = () => {
    caller.isGone = true;
    caller.onGone?.();
  };
  response.once("close", onClose);
  try {
    return await parts.prepareCall({
      dialect: target.surface ?? target.errorsOf,
      publisher,
      body,
      header: (name) => headerOf(request, name),
      requestId: report.requestId,
      trace: report.span.context,
      bodyAtMs: report.bodyAtMs ?? performance.now(),
      caller,
    });
  } catch (err) {
    parts.log.error({ event: "prepare_call_failed", request_id: report.requestId, err });
    const ad = { state: "fallback", reason: "internal_error" } as const;
    return { ad, adResponseId: undefined, body, step: undefined };
  } finally {
    response.off("close", onClose);
  }
}

function openCall(
  parts: Parts,
  { request, response, report, target, publisher }: KnownCall,
  options: {
    readonly headers: readonly string[];
    readonly step?: PreparedCall["step"];
    onBodySent(): void;
  },
): RelayedCall {
  return new RelayedCall({
    request: {
      way: parts.upstreams.find(publisher, target.upstream),
      path: target.path,
      method: request.method ?? "GET",
      headers: [...upstreamHeaders(request.rawHeaders, parts.keyNames), ...options.headers],
    },
    response,
    report,
    calls: parts.openCalls,
    dialect: target.errorsOf,
    step: options.step,
    onBodySent: options.onBodySent,
    onCopyFault: (cause, err) => {
      parts.metrics.countCopyFault();
      parts.log.warn({ event: "copy_failed", request_id: report.requestId, path: report.path, cause, err });
    },
  });
}
