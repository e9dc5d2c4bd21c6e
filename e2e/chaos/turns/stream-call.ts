/** One call through a proxy, as a backend makes it: reads the answer, and notes when which text came. */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { createGunzip } from "node:zlib";
import { EventLines, readAnswer, readEvent, type Said } from "./answers.ts";
import type { ProxyId } from "./faults.ts";
import { bodyOf, PATHS } from "./questions.ts";
import type { CallerPlan } from "./steps.ts";
import { type CallPlace, modelFaultsOf, modelTextOf, type StreamPlan } from "./streams.ts";

/** What the caller knows of one call. Times are by the wall clock. */
export interface CallRecord extends CallPlace {
  /** Of its stream. A call may have got the ad of another stream's turn. */
  readonly plan: StreamPlan;
  readonly proxy: ProxyId;
  /** The call whose tool calls this one answers; undefined for the first step. */
  readonly answers: CallRecord | undefined;
  /** The text that the model has for it. */
  readonly modelText: string;
  readonly startedAtMs: number;
  /** Undefined if no headers came. */
  headersAtMs: number | undefined;
  status: number | undefined;
  /** X-Adrelay-Ad, with its reason. */
  ad: string;
  adResponseId: string | undefined;
  /** The digest of the prompt that reached the model; undefined if it gave no answer. */
  promptHash: string | undefined;
  text: string;
  /** When how many characters of the text had come. */
  readonly arrivals: { readonly atMs: number; readonly chars: number }[];
  /** Of the tools that the model called. */
  readonly callIds: string[];
  /** `whole`: the body ended as HTTP says. */
  end: "whole" | "broken" | "hung_up";
  endedAtMs: number;
}

export interface CallOptions {
  readonly url: string;
  readonly proxy: ProxyId;
  readonly plan: StreamPlan;
  readonly place: CallPlace;
  /** The calls whose tool calls were answered, in their order. The last ones of them are answered by this call. */
  readonly answered: readonly AnsweredCall[];
  readonly caller: CallerPlan;
  readonly key: string;
  /** Called once the headers have come. */
  onHeaders(record: CallRecord): void;
  /** Called whenever a call of a tool has come. */
  onCallIds(record: CallRecord): void;
  readonly signal: AbortSignal;
}

/** A call, and those of its tool calls that are answered. */
export interface AnsweredCall {
  readonly call: CallRecord;
  readonly callIds: readonly string[];
}

/** Never rejects: what went wrong is in the record. */
export async function callModel(options: CallOptions): Promise<CallRecord> {
  const { proxy, plan, place, answered } = options;
  const record: CallRecord = {
    ...place,
    plan,
    proxy,
    answers: answered.at(-1)?.call,
    modelText: modelTextOf(plan, place),
    startedAtMs: Date.now(),
    headersAtMs: undefined,
    status: undefined,
    ad: "",
    adResponseId: undefined,
    promptHash: undefined,
    text: "",
    arrivals: [],
    callIds: [],
    end: "broken",
    endedAtMs: Number.POSITIVE_INFINITY,
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
    record.endedAtMs = Date.now();
  }
  return record;
}

function send({ url, plan, place, answered, key, signal }: CallOptions): ClientRequest {
  const request = httpRequest(url + PATHS[plan.dialect], {
    method: "POST",
    agent: false,
    signal,
    headers: {
      "Content-Type": "application/json",
      Authorization: "Bearer key-at-the-model",
      "anthropic-version": "2023-06-01",
      "X-Service-API-Key": key,
      "X-Adrelay-Session-Id": plan.session,
      "X-Adrelay-User-Agent": "chaos",
      "X-Adrelay-User-IP": "203.0.113.7",
      "X-Demo-Fault": modelFaultsOf(plan, place),
      ...(plan.acknowledges === "manual" ? { "X-Adrelay-Acknowledge": "manual" } : {}),
    },
  });
  // The promise of the answer tells of errors; later ones break the body.
  request.on("error", () => {});
  const { dialect, isStreamed, userText, loop, follows } = plan;
  const question = { dialect, isStreamed, userText, offersTools: loop !== undefined };
  const isAskedAgain = follows !== undefined;
  request.end(bodyOf({ ...question, isAskedAgain, answered: answered.map(({ callIds }) => callIds) }));
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
  const textOf = (name: string) => (headers[name] === undefined ? undefined : String(headers[name]));
  record.headersAtMs = Date.now();
  record.status = statusCode;
  record.ad = textOf("x-adrelay-ad") ?? "";
  record.adResponseId = textOf("x-adrelay-ad-response-id");
  record.promptHash = textOf("x-demo-prompt-sha256");
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
    add(options, record, readAnswer(plan.dialect, body));
  }
}

/** Returns what reads a chunk, and says whether the caller hangs up now. */
function readEvents(options: CallOptions, record: CallRecord): (chunk: string) => boolean {
  const { plan, caller } = options;
  let events = 0;
  const isOver = () =>
    (caller.kind === "hangs_up" && events >= caller.atEvent) ||
    (caller.kind === "takes_calls" && hasAllCalls(plan, record));
  const lines = new EventLines((data) => {
    if (!isOver()) {
      events += 1;
      add(options, record, readEvent(plan.dialect, data));
    }
  });
  return (chunk) => {
    lines.add(chunk);
    return isOver();
  };
}

/** Whether the caller has all tool calls of an answer, so that it can go on. */
export function hasAllCalls({ loop }: StreamPlan, { callIds }: Pick<CallRecord, "callIds">): boolean {
  return loop !== undefined && callIds.length >= (loop.callsTwo ? 2 : 1);
}

function add({ onCallIds }: CallOptions, record: CallRecord, { text, callIds }: Said): void {
  if (text !== "") {
    record.text += text;
    record.arrivals.push({ atMs: Date.now(), chars: record.text.length });
  }
  if (callIds.length > 0) {
    record.callIds.push(...callIds);
    onCallIds(record);
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
