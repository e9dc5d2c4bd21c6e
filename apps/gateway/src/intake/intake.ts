/**
 * Takes an acknowledgment: queue first, then ledger (invariant 2), in one step of Redis, all within a second, answer
 * included. Until that is answered nothing is promised: whatever goes wrong before is `queue_unavailable`, also when the
 * job may be stored, and a repeat meets the same job (invariant 1).
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
import type { LedgerEntry, TakeResult, Taker } from "@adrelay/ledger";
import type { DeliveryQueue } from "@adrelay/queue";
import { OVERDUE, type Tracing, withDeadline } from "@adrelay/service-kit";
import type { Logger } from "pino";

export interface IntakeDeps {
  readonly taker: Taker;
  readonly queue: DeliveryQueue;
  readonly log: Logger;
  readonly tracing: Tracing;
  /** Whether Redis may be trusted with an acknowledgment right now. */
  isDurable(): boolean;
  /** Told of each one that was not on the books before, if Redis answered in time. */
  onAccepted(acceptance: Acceptance): void;
}

export interface Acceptance {
  readonly publisher: PublisherId;
  readonly acceptedAtMs: number;
  /** When its injection was recorded; undefined if the ledger knows of none. */
  readonly recordedAtMs: number | undefined;
}

export interface IntakeInput {
  readonly id: AdResponseId;
  readonly ackId: AdAckId;
  readonly publisher: PublisherId;
  readonly textHash: string;
  /** The caller's body as text, exactly. */
  readonly body: string;
  readonly requestId: string;
  /** The trace of its request: attempts link there. */
  readonly trace: TraceContext | undefined;
  readonly replyTo: string | undefined;
}

export type IntakeResult =
  | { readonly kind: "accepted" }
  | { readonly kind: "repeat"; readonly entry: LedgerEntry }
  | {
      readonly kind: "refused";
      readonly code:
        | "unknown_ad_response"
        | "other_publisher"
        | "not_acknowledgeable"
        | "acknowledgment_conflict"
        | "queue_unavailable";
    };

/** Leaves time, within the second that callers are promised, for the answer, and before it for a batch that is held. */
const INTAKE_TIMEOUT_MS = 850;

class IntakeOverdueError extends Error {
  override readonly name = "IntakeOverdueError";
  override readonly message = "Redis did not answer in time";
}

/** Bounds a call of the taker: one deadline for all that it takes. */
export async function takeInTime<T>(call: Promise<T>): Promise<T> {
  const taken = await withDeadline(call, INTAKE_TIMEOUT_MS);
  if (taken === OVERDUE) {
    throw new IntakeOverdueError();
  }
  return taken;
}

export type Intake = (input: IntakeInput) => Promise<IntakeResult>;

/** The taker's calls must end in time: see `takeInTime`. */
export function makeIntake(deps: IntakeDeps): Intake {
  return async (input) => {
    const span = deps.tracing.startSpan({ name: "intake", kind: "internal", parent: input.trace });
    const result = deps.isDurable() ? await take(deps, input) : UNAVAILABLE;
    span.set({ "adrelay.outcome": result.kind === "refused" ? result.code : result.kind });
    span.end({ isFault: result === UNAVAILABLE });
    return result;
  };
}

const UNAVAILABLE: IntakeResult = { kind: "refused", code: "queue_unavailable" };

async function take(
  { taker, queue, log, onAccepted }: IntakeDeps,
  input: IntakeInput,
): Promise<IntakeResult> {
  const { id, publisher, textHash } = input;
  try {
    const taken = await taker.take({ id, publisher, textHash, job: queue.jobToInsert(toJob(input)) });
    if ("acceptedAtMs" in taken) {
      onAccepted({ publisher, acceptedAtMs: taken.acceptedAtMs, recordedAtMs: taken.recordedAtMs });
    }
    return fromTaken(taken);
  } catch (err) {
    log.warn({ event: "intake_failed", request_id: input.requestId, ad_response_id: id, err });
    return UNAVAILABLE;
  }
}

function toJob({ id, ackId, publisher, body, requestId, trace, replyTo }: IntakeInput): DeliveryJob {
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

function fromTaken(taken: TakeResult): IntakeResult {
  switch (taken.kind) {
    case "accepted":
    case "accepted_late":
    case "accepted_unknown":
      return { kind: "accepted" };
    case "repeat":
      return taken;
    case "unknown":
      return { kind: "refused", code: "unknown_ad_response" };
    case "conflict":
      return { kind: "refused", code: "acknowledgment_conflict" };
    case "not_acknowledgeable":
    case "other_publisher":
      return { kind: "refused", code: taken.kind };
    // The queue took the job and doesn't hold it: it isn't BullMQ as we know it.
    case "payload_missing":
      return UNAVAILABLE;
    default:
      return taken satisfies never;
  }
}
