/** Asks the ad service for an ad, and opens its turn in the step that books it. */
import { randomUUID } from "node:crypto";
import type { AdResponseId, FilledResponse } from "@adrelay/contract";
import type { TurnAd } from "@adrelay/core";
import {
  type Admission,
  type Holding,
  type InjectionAnswer,
  nameOfRefusal,
  type StartInjection,
} from "@adrelay/relay-kit";
import type { OpenedTurn, StepRef, Turns } from "@adrelay/store";
import type { ReadRequest } from "../dialects/dialect.ts";
import type { AdState, SurfaceCall } from "../http/call.ts";
import { enhancedText } from "./enhanced-text.ts";
import { injectionBody, type UserContext } from "./injection-body.ts";
import { refusedHeaders } from "./refused-headers.ts";
import { turnAdOf } from "./turn-ad.ts";

export interface InjectAdDeps {
  readonly turns: Pick<Turns, "open">;
  readonly startInjection: StartInjection;
  readonly admission: Pick<Admission, "admit">;
  readonly ackDeadlineMs: number;
}

export interface AdQuestion {
  readonly call: SurfaceCall;
  readonly request: Pick<Extract<ReadRequest, { kind: "ad_may_go_in" }>, "userText" | "messageText">;
  readonly context: UserContext;
  /** The session's hash; undefined if the installation keeps none. */
  readonly session: string | undefined;
  /** The backend acknowledges by itself. */
  readonly isManual: boolean;
  /** For the ad call and its booking together. */
  readonly timeoutMs: number;
  /** Of a turn that was opened, or may have been, and whose ad isn't used, if no lease ends it soon: nobody else learns of it. */
  acknowledgeEmpty(step: StepRef): void;
}

interface AdInPrompt {
  readonly kind: "ad";
  readonly prompt: string;
  readonly id: AdResponseId;
  readonly step: StepRef;
  /** What is known of it; undefined if nothing is. */
  readonly ad: TurnAd | undefined;
}

export type AdAnswer =
  | AdInPrompt
  | {
      readonly kind: "no_ad";
      readonly state: Exclude<AdState, "injected">;
      readonly reason: string | undefined;
      /** The headers that the ad service names in its refusal, or the quota or limit that refused. */
      readonly detail: string | undefined;
    };

/** The last part of the time, which only the booking may use. */
const BOOKING_RESERVE_MS = 50;
const BOOKING_SHARE_MAX = 0.25;

export async function injectAd(deps: InjectAdDeps, question: AdQuestion): Promise<AdAnswer> {
  const { call, request, context, session, timeoutMs } = question;
  const body = injectionBody(request.messageText, context);
  const bytes = body.length;
  const wanted = { operation: "start_injection", announcedBytes: bytes, bodyBytes: bytes } as const;
  const admitted = deps.admission.admit(call.publisher, wanted);
  if (admitted.kind !== "admitted") {
    return noAd("skipped", "overloaded", nameOfRefusal(admitted));
  }
  const { holding } = admitted;
  if (!holding.holdBody(body.length)) {
    holding.end();
    return noAd("skipped", "overloaded", refusedBy(holding));
  }
  const opening = new TurnOpening(deps, question);
  const input = {
    publisher: call.publisher,
    session,
    requestId: call.requestId,
    trace: call.trace,
    timeoutMs,
    // The budget is all that bounds it.
    recordMaxMs: timeoutMs,
    recordReserveMs: Math.min(BOOKING_RESERVE_MS, timeoutMs * BOOKING_SHARE_MAX),
    caller: call.caller,
    holding,
    recordOk: (id: AdResponseId, answer: FilledResponse) => opening.open(id, answer),
    untrackedOk: "abandon",
  } as const;
  try {
    const answer = readAnswer(await deps.startInjection(input, body), opening, holding);
    if (answer.kind === "no_ad") {
      opening.leave();
    }
    return answer;
  } finally {
    holding.end();
  }
}

/** What refused bytes of a call for an ad, if something did. */
const refusedBy = ({ refusal }: Holding) => (refusal === undefined ? undefined : nameOfRefusal(refusal));

function readAnswer(
  answer: InjectionAnswer,
  { opened, prompt, isUnfit, ad }: TurnOpening,
  holding: Holding,
): AdAnswer {
  switch (answer.kind) {
    case "caller_gone":
      return noAd("fallback", "caller_gone");
    case "fallback":
      return noAd("fallback", answer.reason, refusedBy(holding));
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
      return noAd("fallback", "request_refused", refusedHeaders(bodyOf(answer.raw)));
  }
  if (isUnfit) {
    return noAd("fallback", "message_changed");
  }
  if (answer.untrackedId !== undefined || opened?.kind !== "opened" || prompt === undefined) {
    return noAd("fallback", "not_booked");
  }
  const { step } = opened;
  return { kind: "ad", prompt, id: step.id, step, ad };
}

function bodyOf({ reply }: Extract<InjectionAnswer, { kind: "pass_through" }>["raw"]): unknown {
  return reply.kind === "answered" ? reply.body : undefined;
}

function noAd(state: Exclude<AdState, "injected">, reason: string | undefined, detail?: string): AdAnswer {
  return { kind: "no_ad", state, reason, detail };
}

/**
 * Opens the turn of an ad, and keeps what Redis answered. If the ad isn't used, a journaled turn ends by its lease. A manual one has
 * none, so it is acknowledged here, and so is one whose ad can't be used: its turn isn't an orphan.
 */
class TurnOpening {
  readonly #deps: InjectAdDeps;
  readonly #question: AdQuestion;
  opened: OpenedTurn | undefined;
  /** With the ad; undefined as long as there is no ad that can be used. */
  prompt: string | undefined;
  /** There is an ad, and it can't go into the place of the user's text. */
  isUnfit = false;
  ad: TurnAd | undefined;
  /** Redis has been asked, and its answer may be lost. */
  #asked: StepRef | undefined;
  #isLeft = false;

  constructor(deps: InjectAdDeps, question: AdQuestion) {
    this.#deps = deps;
    this.#question = question;
  }

  async open(
    id: AdResponseId,
    { enhanced_prompt: prompt, product_name: productName }: FilledResponse,
  ): Promise<{ readonly deadlineAtMs: undefined }> {
    const { call, session, isManual, request } = this.#question;
    const { turns, ackDeadlineMs } = this.#deps;
    this.prompt = enhancedText({ prompt, ...request });
    this.isUnfit = this.prompt === undefined;
    this.ad = turnAdOf({ prompt, productName, userText: request.messageText });
    const turn = {
      id,
      publisher: call.publisher.id,
      dialect: call.dialect.name,
      token: randomUUID(),
      session,
      ...(isManual
        ? ({ kind: "manual", deadlineMs: ackDeadlineMs } as const)
        : ({ kind: "journaled", ad: this.ad } as const)),
    };
    try {
      this.opened = await turns.open(turn);
    } finally {
      this.#asked = { id, publisher: turn.publisher, step: 1 };
      this.#endUnused();
    }
    return { deadlineAtMs: undefined };
  }

  /** The ad isn't used. Its opening may still be under way, or come later. */
  leave(): void {
    this.#isLeft = true;
    this.#endUnused();
  }

  #endUnused(): void {
    const { isManual, acknowledgeEmpty } = this.#question;
    const endsByLease = !isManual && !this.isUnfit;
    // An id that the ledger knew is another call's.
    if (!endsByLease && this.#isLeft && this.#asked !== undefined && this.opened?.kind !== "known") {
      acknowledgeEmpty(this.#asked);
    }
  }
}
