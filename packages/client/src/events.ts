/** What the client reports: for logs, metrics and spans. Events have no texts and no keys. */

import type { RelayError } from "./errors.ts";
import type { NoAdReason } from "./outcomes.ts";
import { tryCall } from "./try-call.ts";
import type { AcknowledgmentStatus } from "./wire.ts";

/** Something that happened. Each has what a log line or a metric needs. */
export type RelayEvent =
  | { readonly kind: "injected"; readonly adResponseId: string; readonly durationMs: number }
  | {
      readonly kind: "not_injected";
      readonly reason: NoAdReason;
      readonly durationMs: number;
      readonly error: RelayError | undefined;
    }
  /** The relay has the acknowledgment. `durationMs` is the time since it was stored. */
  | {
      readonly kind: "accepted";
      readonly adResponseId: string;
      readonly status: AcknowledgmentStatus;
      readonly attempts: number;
      readonly durationMs: number;
    }
  /** An attempt failed. The acknowledgment is sent again. */
  | {
      readonly kind: "retrying";
      readonly adResponseId: string;
      readonly attempts: number;
      readonly delayMs: number;
      readonly error: RelayError;
    }
  /** The relay will never accept it: there is nothing to send again. */
  | { readonly kind: "refused"; readonly adResponseId: string; readonly error: RelayError }
  /** It won't be sent again, although the relay might have accepted it. */
  | { readonly kind: "lost"; readonly adResponseId: string; readonly error: RelayError }
  /** Acknowledgments of a process that is gone were taken over. */
  | { readonly kind: "left_over"; readonly count: number }
  /** The outbox failed. The client goes on from memory. */
  | { readonly kind: "outbox_failed"; readonly error: RelayError }
  /**
   * `textOf` threw or gave something else than a text, or a chunk is no text and there is no `textOf`. The chunk was passed on, but
   * is missing in the acknowledged text.
   */
  | { readonly kind: "text_unreadable"; readonly adResponseId: string; readonly error: unknown };

/** Reports what needs a person, if the program has no `onEvent` of its own. */
export function warnOfLosses(event: RelayEvent): void {
  if (event.kind === "lost" || event.kind === "refused" || event.kind === "outbox_failed") {
    const { code, message } = event.error;
    const id = event.kind === "outbox_failed" ? "" : ` ${event.adResponseId}`;
    console.warn(`@adrelay/client: ${event.kind}${id}: ${code}: ${message}`);
  }
}

/** Calls the program's hook. What it throws never reaches the chat. */
export function makeReport(onEvent: (event: RelayEvent) => void): (event: RelayEvent) => void {
  return (event) => tryCall(() => onEvent(event));
}
