/** One call through a proxy, as a backend makes it: reads the answer, and notes when which text came. */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { createGunzip } from "node:zlib";
import { bodyOf, EventLines, PATHS, textOfAnswer, textOfEvent } from "./answers.ts";
import type { ProxyId } from "./faults.ts";
import type { CallerPlan, StreamPlan } from "./streams.ts";

/** What the caller knows of one call. Times are by the wall clock. */
export interface CallRecord {
  readonly proxy: ProxyId;
  readonly startedAtMs: number;
  /** Undefined if no headers came. */
  status: number | undefined;
  /** X-Adrelay-Ad, with its reason. */
  ad: string;
  adResponseId: string | undefined;
  text: string;
  /** When how many characters of the text had come. */
  readonly arrivals: { readonly atMs: number; readonly chars: number }[];
  /** `whole`: the body ended as HTTP says. */
  end: "whole" | "broken" | "hung_up";
}

export interface CallOptions {
  readonly url: string;
  readonly proxy: ProxyId;
  readonly plan: StreamPlan;
  readonly caller: CallerPlan;
  readonly key: string;
  /** Called once the headers have come. */
  onHeaders(record: CallRecord): void;
  readonly signal: AbortSignal;
}

/** Never rejects: what went wrong is in the record. */
export async function callModel(options: CallOptions): Promise<CallRecord> {
  const { proxy } = options;
  const record: CallRecord = {
    proxy,
    startedAtMs: Date.now(),
    status: undefined,
    ad: "",
    adResponseId: undefined,
    text: "",
    arrivals: [],
    end: "broken",
  };
  const request = send(options);
  try {
    const response = await answerTo(request, options, record);
    if (response !== undefined) {
      readHeaders(record, response);
      options.onHeaders(record);
      await readBody(options, record, response);
    }
  } catch {
    // The record says that the answer is broken.
  } finally {
    request.destroy();
  }
  return record;
}

function send({ url, plan, key, signal }: CallOptions): ClientRequest {
  const request = httpRequest(url + PATHS[plan.dialect], {
    method: "POST",
    agent: false,
    signal,
    headers: {
      "Content-Type": "application/json",
      Authorization: "Bearer key-at-the-model",
      "anthropic-version": "2023-06-01",
      "X-Service-API-Key": key,
      "X-Adrelay-Session-Id": `session-${plan.number}`,
      "X-Adrelay-User-Agent": "chaos",
      "X-Adrelay-User-IP": "203.0.113.7",
      "X-Demo-Fault": plan.modelFaults,
      ...(plan.acknowledges === "manual" ? { "X-Adrelay-Acknowledge": "manual" } : {}),
    },
  });
  // The promise of the answer tells of errors; later ones break the body.
  request.on("error", () => {});
  request.end(bodyOf(plan.dialect, plan.prompt, plan.isStreamed));
  return request;
}

/** Undefined if the caller hung up before the headers. */
async function answerTo(
  request: ClientRequest,
  { caller, plan: { number } }: CallOptions,
  record: CallRecord,
): Promise<IncomingMessage | undefined> {
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once("response", resolve).once("error", reject);
    request.once("close", () => reject(new TypeError("no answer")));
  });
  if (caller.kind !== "hangs_up" || caller.atEvent >= 0) {
    return answered;
  }
  answered.catch(() => {});
  // In all phases of the call: while the ad is awaited, and while the model is.
  await wait((number * 7) % 60);
  record.end = "hung_up";
  return undefined;
}

function readHeaders(record: CallRecord, { statusCode, headers }: IncomingMessage): void {
  record.status = statusCode;
  record.ad = String(headers["x-adrelay-ad"] ?? "");
  const id = headers["x-adrelay-ad-response-id"];
  record.adResponseId = id === undefined ? undefined : String(id);
}

async function readBody(options: CallOptions, record: CallRecord, response: IncomingMessage): Promise<void> {
  const { caller, plan } = options;
  const isEvents = /^text\/event-stream/.test(response.headers["content-type"] ?? "");
  const isGzip = response.headers["content-encoding"] === "gzip";
  const chunks = isGzip ? response.pipe(createGunzip()) : response;
  // `pipe` doesn't pass errors on.
  response.on("error", (error) => chunks.destroy(error));
  // The loop below tells of errors; later ones come from the hang-up.
  chunks.on("error", () => {});
  if (caller.kind === "hangs_up" && caller.atEvent === 0) {
    record.end = "hung_up";
    return;
  }
  let body = "";
  const hangUp = isEvents ? readEvents(options, record) : undefined;
  const pacing = paceOf(caller);
  for await (const chunk of chunks.setEncoding("utf8")) {
    if (hangUp === undefined) {
      body += String(chunk);
    } else if (hangUp(String(chunk))) {
      record.end = "hung_up";
      return;
    }
    await pacing(String(chunk).length);
  }
  record.end = response.complete ? "whole" : "broken";
  if (!isEvents && record.end === "whole" && record.status === 200) {
    addText(record, textOfAnswer(plan.dialect, body));
  }
}

/** Returns what reads a chunk, and says whether the caller hangs up now. */
function readEvents(
  { plan: { dialect }, caller }: CallOptions,
  record: CallRecord,
): (chunk: string) => boolean {
  let events = 0;
  const isOver = () => caller.kind === "hangs_up" && events >= caller.atEvent;
  const lines = new EventLines((data) => {
    if (!isOver()) {
      events += 1;
      addText(record, textOfEvent(dialect, data));
    }
  });
  return (chunk) => {
    lines.add(chunk);
    return isOver();
  };
}

function addText(record: CallRecord, text: string): void {
  if (text !== "") {
    record.text += text;
    record.arrivals.push({ atMs: Date.now(), chars: record.text.length });
  }
}

/** A slow caller reads nothing for a while, again and again. */
function paceOf(caller: CallerPlan): (size: number) => Promise<void> {
  let read = 0;
  return async (size) => {
    read += size;
    if (caller.kind === "slow" && read >= caller.everyBytes) {
      read = 0;
      await wait(caller.pauseMs);
    }
  };
}
