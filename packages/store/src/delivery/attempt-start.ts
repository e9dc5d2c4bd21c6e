/** The start of an attempt: what the ledger says of the acknowledgment, and whether an attempt is due. */
import type { PublisherId } from "@adrelay/contract";
import type { EntryState } from "@adrelay/core";
import { Batcher } from "../redis/batcher.ts";
import { FINGERPRINT_FIELD, memberOf, type StoreKeys } from "../redis/keys.ts";
import {
  ACCEPT_CODES,
  type AcceptCode,
  decodeReply,
  numberOf,
  type RunScript,
  readEach,
  stateOf,
  textOf,
} from "../redis/scripts.ts";
import type { JobHead } from "./payload.ts";

/** A queued entry, as an attempt needs it. */
export interface QueuedEntry {
  /** Milliseconds since 1970, by Redis' clock, as all times here. */
  readonly queuedAtMs: number | undefined;
  readonly nextAttemptAtMs: number | undefined;
  readonly attempts: number;
  readonly failedAttempts: number;
}

/** What the ledger says when an attempt is to begin. */
export type BeginResult =
  | { readonly kind: "queued"; readonly nowMs: number; readonly entry: QueuedEntry }
  | { readonly kind: "dead"; readonly reason: string }
  | { readonly kind: "ended"; readonly state: Exclude<EntryState, "absent" | "queued" | "dead"> }
  /** It was never accepted: the request that brought it ended with an error. */
  | { readonly kind: "not_accepted"; readonly why: RefusingCode };
type BookedCode = "accepted" | "accepted_late" | "accepted_unknown" | "repeat";
type RefusingCode = Exclude<AcceptCode, BookedCode | "unknown">;

/** An entry that was read in the step that fetched its job. It is queued, with the text that the queue holds. */
export interface PrefetchedEntry {
  /** Its owner. It wasn't compared with the job's publisher. */
  readonly publisher: string;
  readonly begun: BeginResult;
  /** When it was asked for, by this process' monotonic clock. */
  readonly requestedAtMs: number;
}

/** A job as it was fetched, with what is needed to begin its attempt. */
export interface JobToBegin {
  readonly job: JobHead;
  readonly textHash: string;
  /** Key of the job's payload in Redis. */
  readonly payloadKey: string;
  readonly prefetched: PrefetchedEntry | undefined;
}

/** A job runs as soon as it is fetched. If it is older, this process was blocked, and another may have run the job. */
const PREFETCHED_AGE_MAX_MS = 1000;

/** The prefetched result if it may be used; undefined if the ledger must be asked. `nowMs`: monotonic. */
export function usePrefetched(
  prefetched: PrefetchedEntry | undefined,
  publisher: PublisherId,
  nowMs: number,
): BeginResult | undefined {
  const isUsable =
    prefetched?.publisher === publisher && nowMs - prefetched.requestedAtMs <= PREFETCHED_AGE_MAX_MS;
  return isUsable ? prefetched.begun : undefined;
}

/** A wait shorter than this isn't worth another turn through the queue. */
const EARLY_TOLERANCE_MS = 50;

/** Whether an attempt is to be made, and if not, what happens to its job. */
export type AttemptStart =
  | { readonly kind: "due"; readonly entry: QueuedEntry; readonly nowMs: number }
  | { readonly kind: "early"; readonly delayMs: number }
  | { readonly kind: "dead"; readonly reason: string }
  /** Nothing is to be delivered. `why` is a state or a refusal. */
  | { readonly kind: "ended"; readonly why: string };

export function decideAttempt(begun: BeginResult): AttemptStart {
  switch (begun.kind) {
    case "queued": {
      const { entry, nowMs } = begun;
      const earlyMs = (entry.nextAttemptAtMs ?? 0) - nowMs;
      return earlyMs > EARLY_TOLERANCE_MS
        ? { kind: "early", delayMs: earlyMs }
        : { kind: "due", entry, nowMs };
    }
    case "dead":
      return begun;
    case "ended":
      return { kind: "ended", why: begun.state };
    case "not_accepted":
      return { kind: "ended", why: begun.why };
    default:
      return begun satisfies never;
  }
}

/** Begins attempts by delivery/begin.lua, those of one turn of the event loop in one call. */
export class AttemptStarter {
  readonly #batcher: Batcher<JobToBegin, BeginResult>;

  constructor(run: RunScript, keys: StoreKeys) {
    this.#batcher = new Batcher(async (jobs) => {
      const members = jobs.map(({ job }) => memberOf(job.adResponseId));
      const replies = await run("delivery/begin", {
        keys: [...keys.forEntries(members), ...jobs.map(({ payloadKey }) => payloadKey)],
        args: [
          FINGERPRINT_FIELD,
          ...jobs.flatMap(({ job, textHash }, at) => [members[at] ?? "", job.publisher, textHash]),
        ],
      });
      return readEach(replies, parseBegun);
    });
  }

  /** What the ledger says of a job's acknowledgment. It is booked first if only the queue holds it. */
  async begin(job: JobToBegin): Promise<BeginResult> {
    return (
      usePrefetched(job.prefetched, job.job.publisher, performance.now()) ?? (await this.#batcher.submit(job))
    );
  }
}

/** Reads the text that `writeEntry` in redis/ledger.lua writes. Throws a StoreReplyError for any other. */
function parseBegun(reply: unknown): BeginResult {
  const [code, now, ...fields] = String(reply).split(",");
  const kind = decodeReply(ACCEPT_CODES, code);
  switch (kind) {
    case "accepted":
    case "accepted_late":
    case "accepted_unknown":
    case "repeat":
      return readBegun(Number(now), fields);
    case "conflict":
    case "not_acknowledgeable":
    case "other_publisher":
    case "payload_missing":
      return { kind: "not_accepted", why: kind };
    case "unknown":
    case "over_quota":
    case "no_room":
    case "has_room":
      // delivery/begin.lua refuses for none of these: the queue holds the acknowledgment already.
      return { kind: "not_accepted", why: "payload_missing" };
    default:
      return kind satisfies never;
  }
}

function readBegun(nowMs: number, fields: readonly string[]): BeginResult {
  const [storedState, next, queued, attempts, failed, reason] = fields;
  const state = stateOf(storedState);
  switch (state) {
    case "queued":
      return {
        kind: "queued",
        nowMs,
        entry: {
          nextAttemptAtMs: numberOf(textOf(next, "w"), "w"),
          queuedAtMs: numberOf(textOf(queued, "q"), "q"),
          attempts: numberOf(attempts, "n") ?? 0,
          failedAttempts: numberOf(failed, "f") ?? 0,
        },
      };
    case "dead":
      return { kind: "dead", reason: textOf(reason, "x") ?? "dead" };
    case "awaiting":
    case "missed":
    case "delivered":
    case "refused":
    case "discarded":
    case "expired":
    case "unacknowledgeable":
    case "abandoned":
      return { kind: "ended", state };
    default:
      return state satisfies never;
  }
}

/** Reads what delivery/complete.lua replies of the job that it fetched: the publisher, a comma, the entry. */
export function parsePrefetched(text: string, requestedAtMs: number): PrefetchedEntry {
  const publisher = text.slice(0, text.indexOf(","));
  return { publisher, begun: parseBegun(text.slice(publisher.length + 1)), requestedAtMs };
}
