/** Records the providers' answers to injections, many in one call of intake/record-injection.lua. */
import type { AdResponseId, PublisherId } from "@adrelay/contract";
import { Batcher } from "../redis/batcher.ts";
import { memberOf, type StoreKeys } from "../redis/keys.ts";
import { numberOf, type RunScript, readEach } from "../redis/scripts.ts";

/** The outcomes of an injection, as they are recorded and counted. */
export const RECORDED_OUTCOMES = ["ok", "rejected", "no_fill", "fallback", "abandoned"] as const;

/** An injection's answer, as it is recorded. */
export type InjectionRecord = { readonly id: AdResponseId; readonly publisher: PublisherId } & (
  | {
      readonly outcome: "ok";
      /** Time until the acknowledgment counts as missed. */
      readonly deadlineMs: number;
      /** The session's hash, by which an erasure finds it; undefined if the installation keeps none. */
      readonly session?: string | undefined;
    }
  | { readonly outcome: Exclude<(typeof RECORDED_OUTCOMES)[number], "ok"> }
);

/** What became of a record. */
export interface RecordedInjection {
  /** False if the id was known before. */
  readonly isNew: boolean;
  /** When its acknowledgment counts as missed, in milliseconds since 1970; undefined if there is nothing to acknowledge. */
  readonly deadlineAtMs: number | undefined;
}

export interface InjectionRecorderParts {
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly recordRetentionMs: number;
  readonly deliveredRetentionMs: number;
}

export class InjectionRecorder {
  readonly #batcher: Batcher<InjectionRecord, RecordedInjection>;

  constructor({ run, keys, recordRetentionMs, deliveredRetentionMs }: InjectionRecorderParts) {
    this.#batcher = new Batcher(async (records) => {
      const replies = await run("intake/record-injection", {
        keys: keys.forEntries(records.map(({ id }) => memberOf(id))),
        args: [deliveredRetentionMs, recordRetentionMs, ...records.flatMap(argsOf)],
      });
      return readEach(replies, readRecorded);
    });
  }

  /** Records an injection's answer. Rejects if Redis doesn't confirm it. */
  record(record: InjectionRecord): Promise<RecordedInjection> {
    return this.#batcher.submit(record);
  }
}

function readRecorded(reply: unknown): RecordedInjection {
  const [booked, deadline] = String(reply).split(",");
  return { isNew: booked === "1", deadlineAtMs: deadline ? numberOf(deadline, "d") : undefined };
}

function argsOf(record: InjectionRecord): (string | number)[] {
  const { id, publisher, outcome } = record;
  const [deadlineMs, session = ""] = outcome === "ok" ? [record.deadlineMs, record.session] : [0];
  return [memberOf(id), publisher, stateAfter(outcome), outcome, deadlineMs, session];
}

function stateAfter(outcome: InjectionRecord["outcome"]): "awaiting" | "abandoned" | "unacknowledgeable" {
  switch (outcome) {
    case "ok":
      return "awaiting";
    case "abandoned":
      return "abandoned";
    case "rejected":
    case "no_fill":
    case "fallback":
      return "unacknowledgeable";
    default:
      return outcome satisfies never;
  }
}
