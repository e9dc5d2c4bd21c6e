/**
 * Decides which ad goes into a call: that of the turn which the call belongs to, a new one, or none.
 *
 * 1. Look-up, ad call and booking share one budget of time, from the last byte of the body.
 * 2. An ad is used only if Redis has confirmed its turn. So none is shown that nobody would acknowledge.
 * 3. Without Redis no ad is asked for.
 */
import { randomUUID } from "node:crypto";
import { formatTraceparent } from "@adrelay/contract";
import type { Publisher } from "@adrelay/provider";
import type { SessionHashes } from "@adrelay/relay-kit";
import type { StepRef } from "@adrelay/store";
import type { Logger } from "pino";
import type { BodyRules, ReadRequest } from "../dialects/dialect.ts";
import { splice } from "../dialects/index.ts";
import type { AdState, PrepareCall, PreparedCall, SurfaceCall } from "../http/call.ts";
import { readControls } from "./control-headers.ts";
import { type InjectAdDeps, injectAd } from "./inject-ad.ts";
import { readUserContext, type UserContext } from "./injection-body.ts";
import { type FoundTurn, type JoinDeps, joinTurn } from "./join-turn.ts";
import type { Journal } from "./journal.ts";
import type { NewStep } from "./journaled-step.ts";
import { ManualStep } from "./manual-step.ts";
import { type Pointers, pointersOf } from "./pointers.ts";
import { TurnStep } from "./turn-step.ts";

export interface PrepareCallDeps extends InjectAdDeps, JoinDeps {
  readonly turns: InjectAdDeps["turns"] & JoinDeps["turns"];
  readonly journal: Pick<Journal, "follow" | "hasRoom">;
  readonly sessionHashes: Pick<SessionHashes, "hash">;
  /** Whether Redis takes bookings now. Doesn't ask Redis. */
  readonly canBook: () => boolean;
  /** Whether Redis has room for further turns. Doesn't ask Redis. */
  readonly canOpen: () => boolean;
  readonly log: Logger;
  /** For look-up, ad call and booking together. */
  readonly injectionTimeoutMs: number;
}

/** The look-up of a retry may take this share of the time for an ad. A retry is rare: if Redis is slow, its look-up must not cost the ad. */
const RETRY_LOOK_UP_SHARE = 1 / 8;

/** A call whose body may get an ad. */
interface AdCall {
  readonly call: SurfaceCall;
  readonly request: Extract<ReadRequest, { kind: "ad_may_go_in" }>;
  readonly context: UserContext;
  readonly pointers: Pointers;
  /** The backend acknowledges by itself. */
  readonly isManual: boolean;
  readonly deadlineMs: number;
}

export function makePrepareCall(deps: PrepareCallDeps): PrepareCall {
  return async (call) => {
    try {
      return await prepare(deps, call);
    } catch (err) {
      deps.log.error({ event: "turn_not_prepared", request_id: call.requestId, err });
      return withoutAd(call, "fallback", "internal_error");
    }
  };
}

async function prepare(deps: PrepareCallDeps, call: SurfaceCall): Promise<PreparedCall> {
  const header = (name: string) => call.header(name);
  const controls = readControls(header);
  if (controls.kind === "off") {
    return withoutAd(call, "skipped", "off");
  }
  if (controls.kind === "unknown_value") {
    return withoutAd(call, "skipped", "unknown_value", controls.header);
  }
  const read = readUserContext(header);
  if (read.kind === "missing") {
    return withoutAd(call, "skipped", "no_context", read.headers.join(", "));
  }
  const { context } = read;
  const request = call.dialect.readRequest(call.body, rulesOf(call.publisher));
  if (request.kind === "skip") {
    return withoutAd(call, "skipped", request.reason);
  }
  if (!deps.canBook()) {
    return withoutAd(call, "fallback", "store_unavailable");
  }
  if (!deps.journal.hasRoom) {
    return withoutAd(call, "skipped", "overloaded");
  }
  const adCall = {
    call,
    request,
    context,
    pointers: pointersOf(call.publisher, context.sessionId),
    isManual: controls.isManual,
    deadlineMs: call.bodyAtMs + deps.injectionTimeoutMs,
  };
  return request.answeredCallIds.length > 0 ? nextStep(deps, adCall) : newMessage(deps, adCall);
}

/**
 * A call that answers tool calls belongs to the turn of those calls, or gets no ad. The turn of a backend that acknowledges by itself
 * isn't found: what the same ids lead to is an earlier turn of the session.
 */
async function nextStep(deps: PrepareCallDeps, adCall: AdCall): Promise<PreparedCall> {
  const { call, request, pointers, isManual, deadlineMs } = adCall;
  if (isManual) {
    return withoutAd(call, "skipped", "unknown_step");
  }
  const found = await joinTurn(deps, {
    pointers: request.answeredCallIds.map(pointers.below(request.userText)),
    token: randomUUID(),
    isRetry: false,
    timeoutMs: deadlineMs - performance.now(),
  });
  switch (found.kind) {
    case "joined":
      return withAd(deps, adCall, { ...found, ad: undefined, bodyPointer: undefined, isPromptKept: true });
    case "unknown":
      return withoutAd(call, "skipped", "unknown_step");
    case "ended":
      return withoutAd(call, "skipped", "turn_ended");
    case "unavailable":
      return withoutAd(call, "fallback", "store_unavailable");
    default:
      return found satisfies never;
  }
}

/** A new message is the retry of a call of which nothing was written, or begins a turn. */
async function newMessage(deps: PrepareCallDeps, adCall: AdCall): Promise<PreparedCall> {
  const { call, request, context, isManual, deadlineMs } = adCall;
  const bodyPointer = adCall.pointers.ofBody(call.body);
  const found = isManual ? undefined : await findRetried(deps, bodyPointer, deadlineMs);
  if (found?.kind === "joined") {
    return withAd(deps, adCall, { ...found, ad: undefined, bodyPointer, isPromptKept: true });
  }
  if (!deps.canOpen()) {
    return withoutAd(call, "fallback", "store_unavailable");
  }
  const timeoutMs = deadlineMs - performance.now();
  if (timeoutMs <= 0) {
    return withoutAd(call, "fallback", "timeout");
  }
  const session = deps.sessionHashes.hash(context.sessionId);
  const acknowledgeEmpty = (step: StepRef) =>
    follow(deps, call, { step, prompt: undefined, ad: undefined }).settle("failed");
  const question = { call, request, context, session, isManual, timeoutMs, acknowledgeEmpty };
  const answer = await injectAd(deps, question);
  if (answer.kind === "no_ad") {
    return withoutAd(call, answer.state, answer.reason, answer.detail);
  }
  const { prompt, step } = answer;
  return isManual
    ? { ...injected(adCall, prompt, answer.id), step: new ManualStep(() => acknowledgeEmpty(step)) }
    : withAd(deps, adCall, { step, prompt, ad: answer.ad, bodyPointer });
}

function findRetried(deps: PrepareCallDeps, bodyPointer: string, deadlineMs: number): Promise<FoundTurn> {
  return joinTurn(deps, {
    pointers: [bodyPointer],
    token: randomUUID(),
    isRetry: true,
    timeoutMs: Math.min(RETRY_LOOK_UP_SHARE * deps.injectionTimeoutMs, deadlineMs - performance.now()),
  });
}

interface AdOfStep {
  readonly step: StepRef;
  readonly prompt: string;
  readonly ad: NewStep["ad"];
  readonly bodyPointer: string | undefined;
  /** Redis has the prompt, so this process need not keep it. */
  readonly isPromptKept?: boolean;
}

/** The call with the ad of its turn; the journal follows its answer. */
function withAd(
  deps: PrepareCallDeps,
  adCall: AdCall,
  { step, prompt, ad, bodyPointer, isPromptKept = false }: AdOfStep,
): PreparedCall {
  const { call, request, pointers } = adCall;
  const journaled = follow(deps, call, { step, prompt: isPromptKept ? undefined : prompt, ad });
  const sink = new TurnStep({
    journaled,
    pointerOfCall: pointers.below(request.userText),
    bodyPointer,
    turnWaitMs: deps.turnWaitMs,
  });
  return { ...injected(adCall, prompt, step.id), step: sink };
}

function follow(
  { journal }: PrepareCallDeps,
  { trace, requestId }: SurfaceCall,
  { step, prompt, ad }: Pick<NewStep, "prompt" | "ad"> & { readonly step: StepRef },
) {
  const traceparent = trace === undefined ? undefined : formatTraceparent(trace);
  return journal.follow({ ref: step, prompt, ad, requestId, traceparent });
}

function injected({ call, request }: AdCall, prompt: string, adResponseId: string) {
  const ad = { state: "injected", reason: undefined } as const;
  return { ad, adResponseId, body: splice(call.body, request.place, prompt) };
}

function withoutAd(
  call: SurfaceCall,
  state: AdState,
  reason: string | undefined,
  detail?: string | undefined,
): PreparedCall {
  return { ad: { state, reason, detail }, adResponseId: undefined, body: call.body, step: undefined };
}

function rulesOf({ cacheMarked, storedResponses }: Publisher): BodyRules {
  return { allowsCacheMarked: cacheMarked === "allow", allowsStoredResponses: storedResponses !== "skip" };
}
