/**
 * Records what became of an injection, within a limit of time. Redis may be away: then the injection goes on without its
 * record, and is counted as untracked.
 */
import type { AdResponseId, FilledResponse } from "@adrelay/contract";
import type { FallbackReason } from "@adrelay/core";
import type { Publisher } from "@adrelay/provider";
import { type Lifecycle, OVERDUE, withDeadline } from "@adrelay/service-kit";
import type { InjectionRecord, RecordedInjection, Store } from "@adrelay/store";
import type { Logger } from "pino";
import { OnceASecond } from "../once-a-second.ts";
import type { AnsweredInjection, InjectionMetrics } from "./injection-metrics.ts";

/** When an acknowledgment is due, in milliseconds since 1970; undefined if there is nothing to acknowledge. */
type RecordedAnswer = Pick<RecordedInjection, "deadlineAtMs">;

/** Records an ad in its own way. `answer`: the provider's. Rejects if Redis doesn't confirm it. */
type RecordOk = (id: AdResponseId, answer: FilledResponse) => Promise<RecordedAnswer>;

/** Whose answer is recorded, and how. */
export interface RecordInput {
  readonly publisher: Publisher;
  /** The session's hash; undefined if none is kept. */
  readonly session: string | undefined;
  readonly requestId: string;
  /** Records the outcome `ok`, in place of `injections.record`. */
  readonly recordOk?: RecordOk;
  /**
   * What follows if Redis doesn't confirm the record of an ad in time. `use`, the default: the ad goes out untracked.
   * `abandon`: the caller of this doesn't use the ad, and it is booked as abandoned unless the record came through.
   */
  readonly untrackedOk?: "use" | "abandon";
}

type AnswerRecord = Pick<InjectionRecord, "id"> & { readonly timeoutMs: number } & (
    | { readonly outcome: "ok"; readonly answer: FilledResponse }
    | { readonly outcome: "fallback"; readonly reason: FallbackReason }
    | { readonly outcome: Exclude<InjectionRecord["outcome"], "ok" | "fallback"> }
  );

/** Undefined if the store doesn't confirm the record in time. */
export type RecordAnswer = (input: RecordInput, answer: AnswerRecord) => Promise<RecordedAnswer | undefined>;

export interface RecordDeps {
  readonly injections: Store["injections"];
  readonly metrics: InjectionMetrics;
  readonly log: Logger;
  /** Its stop reports the last untracked injections. */
  readonly lifecycle: Pick<Lifecycle, "onStopLast">;
  /** Takes over work that nobody waits for. */
  readonly pending: { add(work: Promise<void>): void };
  readonly ackDeadlineMs: number;
}

/** How long the store may delay an answer. */
export const RECORD_TIMEOUT_MS = 250;

const TOO_SLOW = { recorded: undefined, err: "the store was too slow" } as const;

/** An injection whose record Redis didn't confirm. */
interface Untracked {
  readonly requestId: string;
  readonly adResponseId: AdResponseId;
  readonly outcome: InjectionRecord["outcome"];
  readonly err: unknown;
}

function reportUntracked({ log, lifecycle }: RecordDeps): OnceASecond<Untracked> {
  const untracked = new OnceASecond<Untracked>(
    ({ requestId: request_id, adResponseId: ad_response_id, outcome, err }, count) => {
      log.warn({ event: "injection_untracked", count, request_id, ad_response_id, outcome, err });
    },
  );
  lifecycle.onStopLast("reports of untracked injections", () => untracked.flush());
  return untracked;
}

export function makeRecordAnswer(deps: RecordDeps): RecordAnswer {
  const untracked = reportUntracked(deps);
  return async (input, answer) => {
    const { id, outcome, timeoutMs } = answer;
    const written = write(deps, input, answer).then(
      (recorded) => ({ recorded, err: undefined }),
      (err: unknown) => ({ recorded: undefined, err }),
    );
    const result = await withDeadline(written, timeoutMs);
    const { recorded, err } = result === OVERDUE ? TOO_SLOW : result;
    const isAbandoned = recorded === undefined && outcome === "ok" && input.untrackedOk === "abandon";
    deps.metrics.countInjection(
      input.publisher.id,
      isAbandoned ? { outcome: "abandoned" } : labelsOf(answer),
    );
    if (recorded === undefined) {
      deps.metrics.countUntracked();
      untracked.add({ requestId: input.requestId, adResponseId: id, outcome, err });
    }
    if (isAbandoned) {
      deps.pending.add(bookAbandoned(deps, input, id));
    }
    return recorded;
  };
}

function write(
  { injections, ackDeadlineMs }: RecordDeps,
  { publisher, session, recordOk }: RecordInput,
  record: AnswerRecord,
): Promise<RecordedAnswer> {
  const { id, outcome } = record;
  const base = { id, publisher: publisher.id };
  if (outcome !== "ok") {
    return injections.record({ ...base, outcome });
  }
  return (
    recordOk?.(id, record.answer) ??
    injections.record({ ...base, outcome, deadlineMs: ackDeadlineMs, session })
  );
}

function labelsOf(answer: AnswerRecord): AnsweredInjection {
  return answer.outcome === "fallback"
    ? { outcome: answer.outcome, reason: answer.reason }
    : { outcome: answer.outcome };
}

/** Books an ad that nobody gets. It changes nothing if the record came through. A failure is counted as untracked already. */
async function bookAbandoned(
  { injections }: RecordDeps,
  { publisher }: RecordInput,
  id: AdResponseId,
): Promise<void> {
  const booked = injections.record({ id, publisher: publisher.id, outcome: "abandoned" });
  await withDeadline(
    booked.catch(() => undefined),
    RECORD_TIMEOUT_MS,
  );
}
