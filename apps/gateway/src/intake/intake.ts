/**
 * Takes an acknowledgment: queue first, then ledger (invariant 2), all within a second, answer included. Until the ledger has booked it, nothing is promised: whatever goes wrong before is
 * `queue_unavailable`, also when the job may be stored, and a repeat meets the same job (invariant 1).
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
import { decideIntake } from "@adrelay/core";
import type { AcceptResult, Ledger, LedgerEntry } from "@adrelay/ledger";
import type { DeliveryQueue } from "@adrelay/queue";
import { OVERDUE, type Tracing, withDeadline } from "@adrelay/service-kit";
import type { Logger } from "pino";

export interface IntakeDeps {
  readonly ledger: Ledger;
  readonly queue: DeliveryQueue;
  readonly log: Logger;
  readonly tracing: Tracing;
  readonly takesUnknown: boolean;
  /** Whether Redis may be trusted with an acknowledgment right now. */
  isDurable(): boolean;
  /** Told of each one that was not on the books before. */
  onAccepted(entry: LedgerEntry): void;
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

/** Leaves time for the answer within the second that callers are promised. */
const INTAKE_TIMEOUT_MS = 900;

export type Intake = (input: IntakeInput) => Promise<IntakeResult>;

export function makeIntake(deps: IntakeDeps): Intake {
  return async (input) => {
    const span = deps.tracing.startSpan({ name: "intake", kind: "internal", parent: input.trace });
    const result = await takeInTime(deps, input);
    const isFault = result.kind === "refused" && result.code === "queue_unavailable";
    span.set({ "adrelay.outcome": result.kind === "refused" ? result.code : result.kind });
    span.end({ isFault });
    return result;
  };
}

async function takeInTime(deps: IntakeDeps, input: IntakeInput): Promise<IntakeResult> {
  if (!deps.isDurable()) {
    return { kind: "refused", code: "queue_unavailable" };
  }
  const taken = take(deps, input).catch((err: unknown): IntakeResult => {
    deps.log.warn({ event: "intake_failed", request_id: input.requestId, ad_response_id: input.id, err });
    return { kind: "refused", code: "queue_unavailable" };
  });
  const result = await withDeadline(taken, INTAKE_TIMEOUT_MS);
  return result === OVERDUE ? { kind: "refused", code: "queue_unavailable" } : result;
}

async function take(deps: IntakeDeps, input: IntakeInput): Promise<IntakeResult> {
  const { ledger, takesUnknown } = deps;
  const { id, publisher, textHash } = input;
  const entry = await ledger.find(id);
  const decision = decideIntake({ entry, publisher, textHash, takesUnknown });
  if (decision.kind === "refuse") {
    return { kind: "refused", code: decision.code };
  }
  if (decision.kind === "repeat" && entry !== undefined) {
    return { kind: "repeat", entry };
  }
  const accepted = await queueAndBook(deps, input);
  if ("entry" in accepted) {
    deps.onAccepted(accepted.entry);
  }
  return fromAccept(accepted);
}

/**
 * The booking is sent right after the job, without a wait in between: Redis takes them in this order, and books nothing
 * that the queue doesn't hold. Both must have been answered.
 */
async function queueAndBook({ ledger, queue }: IntakeDeps, input: IntakeInput): Promise<AcceptResult> {
  const { id, publisher, textHash } = input;
  const { payload, stored } = await queue.send(toJob(input), textHash);
  const booking = { id, publisher, textHash, payload };
  const [accepted] = await Promise.all([ledger.accept(booking), stored]);
  // Redis had forgotten the queue's script, so the job was sent a second time, behind the booking.
  return accepted.kind === "payload_missing" ? ledger.accept(booking) : accepted;
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

function fromAccept(accepted: AcceptResult): IntakeResult {
  switch (accepted.kind) {
    case "accepted":
    case "accepted_late":
    case "accepted_unknown":
      return { kind: "accepted" };
    // The worker was quicker: it booked the job, and may have delivered it.
    case "repeat":
      return accepted.entry.state === "queued"
        ? { kind: "accepted" }
        : { kind: "repeat", entry: accepted.entry };
    case "conflict":
      return { kind: "refused", code: "acknowledgment_conflict" };
    case "not_acknowledgeable":
    case "other_publisher":
      return { kind: "refused", code: accepted.kind };
    // The queue answered that it has the job, and then had it no more: Redis lost data in between.
    case "payload_missing":
      return { kind: "refused", code: "queue_unavailable" };
    default:
      return accepted satisfies never;
  }
}
