import type { AdAckId, AdResponseId, PublisherId, TraceContext } from "@adrelay/contract";
import type { Ledger } from "@adrelay/ledger";
import { OVERDUE, withDeadline } from "@adrelay/service-kit";
import { textHashOf } from "../../intake/fingerprints.ts";
import type { Intake } from "../../intake/intake.ts";
import type { OutcomeWait, OutcomeWaiters } from "../../intake/outcome-waiters.ts";
import { type Standing, standingAfter, standingOf } from "./standing.ts";

export interface AcknowledgeDeps {
  readonly intake: Intake;
  readonly waiters: OutcomeWaiters;
  readonly ledger: Ledger;
}

export interface AcknowledgeInput {
  readonly publisher: PublisherId;
  readonly id: AdResponseId;
  readonly ackId: AdAckId;
  readonly text: string;
  readonly body: string;
  readonly requestId: string;
  /** The trace of its request. */
  readonly trace: TraceContext | undefined;
  readonly waitMs: number;
}

const LAST_LOOK_TIMEOUT_MS = 250;

export type Acknowledge = (input: AcknowledgeInput) => Promise<Standing>;

/** Takes an acknowledgment, then waits for its outcome as long as the caller likes. */
export function makeAcknowledge(deps: AcknowledgeDeps): Acknowledge {
  return async (input) => {
    const wait = input.waitMs > 0 ? deps.waiters.wait(input.id) : undefined;
    try {
      const { publisher, id, ackId, body, requestId, trace, text } = input;
      const textHash = textHashOf(publisher, text);
      const replyTo = wait?.channel;
      const taken = await deps.intake({
        id,
        ackId,
        publisher,
        textHash,
        body,
        requestId,
        trace,
        replyTo,
      });
      switch (taken.kind) {
        case "refused":
          return { kind: "error", code: taken.code };
        case "repeat":
          return standingOf(taken.entry);
        case "accepted":
          return wait === undefined ? { kind: "open" } : await awaitOutcome(deps, input, wait);
        default:
          return taken satisfies never;
      }
    } finally {
      wait?.end();
    }
  };
}

async function awaitOutcome(
  { ledger }: AcknowledgeDeps,
  { id, waitMs }: AcknowledgeInput,
  wait: OutcomeWait,
): Promise<Standing> {
  const untilMs = performance.now() + waitMs;
  for (;;) {
    const notice = await wait.next(untilMs - performance.now());
    if (notice === undefined) {
      break;
    }
    const standing = standingAfter(notice, untilMs - performance.now());
    if (standing !== undefined) {
      return standing;
    }
  }
  // A notice can get lost on its way; the ledger can't be wrong.
  const entry = await withDeadline(
    ledger.find(id).catch(() => undefined),
    LAST_LOOK_TIMEOUT_MS,
  );
  return entry === undefined || entry === OVERDUE ? { kind: "open" } : standingOf(entry);
}
