/** Asks the ad service for an ad, and opens its turn in the step that books it. */
import { randomUUID } from "node:crypto";
import { type AdResponseId, filledResponseSchema } from "@adrelay/contract";
import type { Admission, Caller, InjectionAnswer, StartInjection } from "@adrelay/relay-kit";
import type { OpenedTurn, StepRef, Turns } from "@adrelay/store";
import type { AdState, SurfaceCall } from "../http/call.ts";
import { injectionBody, type UserContext } from "./injection-body.ts";

export interface InjectAdDeps {
  readonly turns: Pick<Turns, "open">;
  readonly startInjection: StartInjection;
  readonly admission: Pick<Admission, "admit">;
  readonly ackDeadlineMs: number;
}

export interface AdQuestion {
  readonly call: SurfaceCall;
  readonly userText: string;
  readonly context: UserContext;
  /** The session's hash; undefined if the installation keeps none. */
  readonly session: string | undefined;
  /** The backend acknowledges by itself. */
  readonly isManual: boolean;
  /** For the ad call and its booking together. */
  readonly timeoutMs: number;
}

export type AdAnswer =
  | { readonly kind: "ad"; readonly prompt: string; readonly id: AdResponseId; readonly step: StepRef }
  | {
      readonly kind: "no_ad";
      readonly state: Exclude<AdState, "injected">;
      readonly reason: string | undefined;
    };

/** The last part of the time, which only the booking may use. */
const BOOKING_RESERVE_MS = 50;
const BOOKING_SHARE_MAX = 0.25;

export async function injectAd(deps: InjectAdDeps, question: AdQuestion): Promise<AdAnswer> {
  const { call, userText, context, session, timeoutMs } = question;
  const body = injectionBody(userText, context);
  const bytes = body.length;
  const wanted = { operation: "start_injection", announcedBytes: bytes, bodyBytes: bytes } as const;
  const admitted = deps.admission.admit(call.publisher, wanted);
  if (admitted.kind !== "admitted") {
    return noAd("skipped", "overloaded");
  }
  const { holding } = admitted;
  if (!holding.holdBody(body.length)) {
    holding.end();
    return noAd("skipped", "overloaded");
  }
  const opening = new TurnOpening(deps, question);
  const caller = callerOf(call.callerGone);
  const input = {
    publisher: call.publisher,
    session,
    requestId: call.requestId,
    trace: call.trace,
    timeoutMs,
    recordReserveMs: Math.min(BOOKING_RESERVE_MS, timeoutMs * BOOKING_SHARE_MAX),
    caller,
    holding,
    recordOk: (id: AdResponseId) => opening.open(id),
    untrackedOk: "abandon",
  } as const;
  try {
    return readAnswer(await deps.startInjection(input, body), opening.opened);
  } finally {
    caller.forget();
    holding.end();
  }
}

function readAnswer(answer: InjectionAnswer, opened: OpenedTurn | undefined): AdAnswer {
  switch (answer.kind) {
    case "caller_gone":
      return noAd("fallback", "caller_gone");
    case "fallback":
      return noAd("fallback", answer.reason);
    case "pass_through":
      break;
    default:
      return answer satisfies never;
  }
  switch (answer.outcome) {
    case "no_fill":
    case "rejected":
      return noAd(answer.outcome, undefined);
    case "ok":
      break;
    default:
      return noAd("fallback", "request_refused");
  }
  const { reply } = answer.raw;
  const filled = filledResponseSchema.safeParse(reply.kind === "answered" ? reply.body : undefined);
  if (answer.untrackedId !== undefined || opened?.kind !== "opened" || !filled.success) {
    return noAd("fallback", "not_booked");
  }
  const { ad_response_id: id, enhanced_prompt: prompt } = filled.data;
  return { kind: "ad", prompt, id, step: opened.step };
}

function noAd(state: Exclude<AdState, "injected">, reason: string | undefined): AdAnswer {
  return { kind: "no_ad", state, reason };
}

/** Opens the turn of an ad, and keeps what Redis answered. */
class TurnOpening {
  readonly #deps: InjectAdDeps;
  readonly #question: AdQuestion;
  opened: OpenedTurn | undefined;

  constructor(deps: InjectAdDeps, question: AdQuestion) {
    this.#deps = deps;
    this.#question = question;
  }

  async open(id: AdResponseId): Promise<{ readonly deadlineAtMs: undefined }> {
    const { call, session, isManual } = this.#question;
    const { turns, ackDeadlineMs } = this.#deps;
    const turn = {
      id,
      publisher: call.publisher.id,
      dialect: call.dialect.name,
      token: randomUUID(),
      session,
      ...(isManual
        ? ({ kind: "manual", deadlineMs: ackDeadlineMs } as const)
        : ({ kind: "journaled" } as const)),
    };
    this.opened = await turns.open(turn);
    return { deadlineAtMs: undefined };
  }
}

/** The caller in the form that the wait for the ad service needs. */
function callerOf(gone: AbortSignal) {
  const onAbort = () => caller.onGone?.();
  const caller: Caller & { forget(): void } = {
    get isGone() {
      return gone.aborted;
    },
    onGone: undefined,
    forget: () => gone.removeEventListener("abort", onAbort),
  };
  gone.addEventListener("abort", onAbort, { once: true });
  return caller;
}
