/**
 * Accepts an acknowledgment, then waits for its outcome as long as the caller wants.
 * Nothing of its text is held while a caller waits.
 *
 * 1. The store queues and books it in one step (invariant 2), within a second, including the answer. Until the store has
 *    answered, nothing is promised: any failure before that is `queue_unavailable`, or `storage_full` if Redis is full, even
 *    if the job may be stored. A repeat meets the same job (invariant 1).
 * 2. The worker sends the outcome on this process' own channel. A message can be lost, so the ledger is asked at the end,
 *    and in between if Redis doesn't permit the channel. For a repeat it is asked in between, too: the outcome goes to the
 *    process that accepted the acknowledgment, if a caller waited there.
 * 3. A wait ends when its caller hangs up: its call is given back then, so that nothing else bounds how many waits there are.
 */
import {
  type AdAckId,
  type AdResponseId,
  DELIVERY_JOB_VERSION,
  type DeliveryJob,
  formatTraceparent,
  type PublisherId,
  type TraceContext,
} from "@adrelay/contract";
import { redisErrorWord } from "@adrelay/core";
import { type Caller, OnceASecond, type QuotaName } from "@adrelay/relay-kit";
import {
  type DurabilityGuard,
  type Lifecycle,
  OVERDUE,
  type Tracing,
  withDeadline,
} from "@adrelay/service-kit";
import { type AcceptResult, type LedgerEntry, type OverQuota, type Store, textHashOf } from "@adrelay/store";
import type { Logger } from "pino";
import type { OutcomeWait, OutcomeWaiters } from "./outcome-waiters.ts";
import { type AcknowledgeOutcome, outcomeOfEntry, outcomeOfNotice, QUEUED } from "./outcomes.ts";

export interface AcknowledgeDeps {
  readonly acknowledgments: Pick<Store["acknowledgments"], "accept" | "find">;
  readonly waiters: OutcomeWaiters;
  readonly log: Logger;
  /** Its stop reports the last refusals. */
  readonly lifecycle: Pick<Lifecycle, "onStopLast">;
  readonly refusals: OnceASecond<Refusal>;
  readonly tracing: Tracing;
  /** Whether Redis is durable now. Otherwise no acknowledgment is accepted. */
  readonly durability: Pick<DurabilityGuard, "isDurable">;
  /** Called for each one that was not accepted before. */
  onAccepted(acceptance: Acceptance): void;
  /** Called for each one that a quota refuses. */
  onOverQuota(publisher: PublisherId, quota: QuotaName): void;
}

export interface Acceptance {
  readonly publisher: PublisherId;
  readonly acceptedAtMs: number;
  /** When its injection was recorded; undefined if the ledger knows of none. */
  readonly recordedAtMs: number | undefined;
}

export interface AcknowledgeInput {
  readonly publisher: PublisherId;
  readonly id: AdResponseId;
  readonly ackId: AdAckId;
  readonly text: string;
  /** The caller's body as text, unchanged. */
  readonly body: string;
  readonly requestId: string;
  /** The trace of the request; attempts link to it. */
  readonly trace: TraceContext | undefined;
  readonly waitMs: number;
  readonly caller: Caller;
  /** Called once nothing of the text is held any more. */
  onLetGo(): void;
}

export type Acknowledge = (input: AcknowledgeInput) => Promise<AcknowledgeOutcome>;

/** Leaves time for the answer within the second that callers are promised. */
const ACCEPT_TIMEOUT_MS = 850;
const QUESTION_TIMEOUT_MS = 250;
/** A wait that can hear nothing asks the ledger this often. A repeat begins so, and doubles the pause each time. */
const DEAF_QUESTION_MS = 100;
const REPEAT_QUESTION_MAX_MS = 1000;

/** A refused acknowledgment. */
interface Refusal {
  readonly requestId: string;
  readonly adResponseId: string;
  readonly err: unknown;
}

function reportRefusals({
  log,
  lifecycle,
}: Pick<AcknowledgeDeps, "log" | "lifecycle">): OnceASecond<Refusal> {
  const refusals = new OnceASecond<Refusal>(
    ({ requestId: request_id, adResponseId: ad_response_id, err }, count) => {
      log.warn({ event: "intake_failed", count, request_id, ad_response_id, err });
    },
  );
  lifecycle.onStopLast("reports of refused acknowledgments", () => refusals.flush());
  return refusals;
}

export function makeAcknowledge(given: Omit<AcknowledgeDeps, "refusals">): Acknowledge {
  const deps = { ...given, refusals: reportRefusals(given) };
  // Not async, because the input has the text: see `conclude`.
  return (input) => {
    const { id, waitMs, caller } = input;
    // Begins before the job is queued, so that no message is missed.
    const wait = waitMs > 0 ? deps.waiters.wait(id, caller) : undefined;
    return conclude(deps, { id, waitMs, caller, wait }, traceAccept(deps, input, wait?.channel));
  };
}

/** What is needed of an acknowledgment after it was accepted. */
interface AcceptedInput {
  readonly id: AdResponseId;
  readonly waitMs: number;
  readonly caller: Caller;
  readonly wait: OutcomeWait | undefined;
}

async function conclude(
  deps: AcknowledgeDeps,
  input: AcceptedInput,
  accepting: Promise<Accepted>,
): Promise<AcknowledgeOutcome> {
  const { wait } = input;
  try {
    const accepted = await accepting;
    switch (accepted.kind) {
      case "refused":
        return { kind: "error", code: accepted.code };
      case "over_quota":
        return accepted;
      case "repeat":
        return outcomeOfEntry(
          wait === undefined ? accepted.entry : await awaitEnd(deps, input, accepted, wait),
        );
      case "accepted":
        return wait === undefined ? QUEUED : await awaitOutcome(deps, { ...input, ...accepted }, wait);
      default:
        return accepted satisfies never;
    }
  } finally {
    wait?.end();
  }
}

type Accepted =
  /** `isRecorded`: the ledger knows its injection. */
  | { readonly kind: "accepted"; readonly isRecorded: boolean }
  | { readonly kind: "repeat"; readonly entry: LedgerEntry }
  | OverQuota
  | {
      readonly kind: "refused";
      readonly code:
        | "unknown_ad_response"
        | "other_publisher"
        | "not_acknowledgeable"
        | "acknowledgment_conflict"
        | "storage_full"
        | "queue_unavailable";
    };

const UNAVAILABLE: Accepted = { kind: "refused", code: "queue_unavailable" };
const FULL: Accepted = { kind: "refused", code: "storage_full" };

async function traceAccept(
  deps: AcknowledgeDeps,
  input: AcknowledgeInput,
  replyTo: string | undefined,
): Promise<Accepted> {
  const span = deps.tracing.startSpan({ name: "intake", kind: "internal", parent: input.trace });
  const accepted = await accept(deps, input, replyTo);
  span.set({ "adrelay.outcome": accepted.kind === "refused" ? accepted.code : accepted.kind });
  span.end({ isFault: accepted === UNAVAILABLE });
  return accepted;
}

class AcceptOverdueError extends Error {
  override readonly name = "AcceptOverdueError";
  override readonly message = "Redis did not answer in time";
}

class NotDurableError extends Error {
  override readonly name = "NotDurableError";
  override readonly message = "Redis is away, or not known to be durable";
}

class NoRoomError extends Error {
  override readonly name = "NoRoomError";
  override readonly message = "Redis is nearly full, and its room is kept for others";
}

async function accept(
  { acknowledgments, durability, refusals, onAccepted, onOverQuota }: AcknowledgeDeps,
  input: AcknowledgeInput,
  replyTo: string | undefined,
): Promise<Accepted> {
  const { id, publisher, text, requestId } = input;
  try {
    if (!durability.isDurable) {
      input.onLetGo();
      throw new NotDurableError();
    }
    const accepting = acknowledgments.accept({
      job: jobOf(input, replyTo),
      textHash: textHashOf(publisher, text),
    });
    // Also after the deadline: until Redis has answered, the text waits in our queue to it.
    void accepting.then(input.onLetGo, input.onLetGo);
    const result = await withDeadline(accepting, ACCEPT_TIMEOUT_MS);
    if (result === OVERDUE) {
      throw new AcceptOverdueError();
    }
    if ("acceptedAtMs" in result) {
      onAccepted({ publisher, acceptedAtMs: result.acceptedAtMs, recordedAtMs: result.recordedAtMs });
    } else if (result.kind === "over_quota") {
      onOverQuota(publisher, result.quota);
    } else if (result.kind === "no_room") {
      onOverQuota(publisher, "redis_memory");
      refusals.add({ requestId, adResponseId: id, err: new NoRoomError() });
    }
    return acceptedOf(result);
  } catch (err) {
    refusals.add({ requestId, adResponseId: id, err });
    return redisErrorWord(err) === "OOM" ? FULL : UNAVAILABLE;
  }
}

function jobOf(
  { id, ackId, publisher, body, requestId, trace }: AcknowledgeInput,
  replyTo: string | undefined,
): DeliveryJob {
  return {
    v: DELIVERY_JOB_VERSION,
    adResponseId: id,
    adAckId: ackId,
    publisher,
    body,
    requestId,
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(trace === undefined ? {} : { traceparent: formatTraceparent(trace) }),
  };
}

function acceptedOf(result: AcceptResult): Accepted {
  switch (result.kind) {
    case "accepted":
    case "accepted_late":
    case "accepted_unknown":
      return { kind: "accepted", isRecorded: result.kind !== "accepted_unknown" };
    case "repeat":
    case "over_quota":
      return result;
    case "no_room":
      return FULL;
    case "unknown":
      return { kind: "refused", code: "unknown_ad_response" };
    case "conflict":
      return { kind: "refused", code: "acknowledgment_conflict" };
    case "not_acknowledgeable":
    case "other_publisher":
      return { kind: "refused", code: result.kind };
    default:
      return result satisfies never;
  }
}

async function awaitOutcome(
  { acknowledgments, waiters }: AcknowledgeDeps,
  { id, waitMs, caller, isRecorded }: AcceptedInput & { readonly isRecorded: boolean },
  wait: OutcomeWait,
): Promise<AcknowledgeOutcome> {
  const untilMs = performance.now() + waitMs;
  for (;;) {
    const leftMs = untilMs - performance.now();
    const notice = await wait.next(wait.isDeaf ? Math.min(leftMs, DEAF_QUESTION_MS) : leftMs);
    if (caller.isGone) {
      return QUEUED;
    }
    if (notice !== undefined) {
      const outcome = outcomeOfNotice(notice, { leftMs: untilMs - performance.now(), isRecorded });
      if (outcome !== undefined) {
        return outcome;
      }
    } else {
      const outcome = await askLedger(acknowledgments, id);
      if (outcome.kind !== "open" || performance.now() >= untilMs || !wait.isDeaf || waiters.isStopped) {
        return outcome;
      }
    }
  }
}

/**
 * The entry of a repeat once its acknowledgment isn't queued any more, or at the end of the wait. It is told early that the
 * next attempt comes after the wait, as the first caller is. Its time is by Redis' clock, so it is only nearly known here.
 */
async function awaitEnd(
  { acknowledgments, waiters }: AcknowledgeDeps,
  { id, waitMs, caller }: AcceptedInput,
  repeat: { readonly entry: LedgerEntry },
  wait: OutcomeWait,
): Promise<LedgerEntry> {
  const untilMs = performance.now() + waitMs;
  let { entry } = repeat;
  let pauseMs = DEAF_QUESTION_MS;
  for (;;) {
    const leftMs = untilMs - performance.now();
    if (leftMs <= 0 || waiters.isStopped || entry.state !== "queued") {
      return entry;
    }
    if (entry.nextAttemptAtMs !== undefined && entry.nextAttemptAtMs - Date.now() > leftMs) {
      return entry;
    }
    // A notice ends the pause. The ledger has what it says, since both are one step of Redis.
    await wait.next(Math.min(leftMs, pauseMs));
    if (caller.isGone) {
      return entry;
    }
    pauseMs = Math.min(2 * pauseMs, REPEAT_QUESTION_MAX_MS);
    entry = (await findEntry(acknowledgments, id)) ?? entry;
  }
}

async function askLedger(
  acknowledgments: Pick<Store["acknowledgments"], "find">,
  id: AdResponseId,
): Promise<AcknowledgeOutcome> {
  const entry = await findEntry(acknowledgments, id);
  return entry === undefined ? QUEUED : outcomeOfEntry(entry);
}

/** Undefined if Redis doesn't answer in time. */
async function findEntry(
  acknowledgments: Pick<Store["acknowledgments"], "find">,
  id: AdResponseId,
): Promise<LedgerEntry | undefined> {
  const entry = await withDeadline(
    acknowledgments.find(id).catch(() => undefined),
    QUESTION_TIMEOUT_MS,
  );
  return entry === OVERDUE ? undefined : entry;
}
