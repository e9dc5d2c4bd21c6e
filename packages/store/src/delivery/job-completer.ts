/**
 * The end of one delivery, from the outcome of its attempt to the end of its job. It reads from top to bottom:
 *
 * - `end` gets the outcome. A retry or a death is booked immediately by delivery/settle.lua. Then the queue delays the
 *   job or keeps it as a dead letter. A parked acknowledgment is parked, then its job is delayed.
 * - A delivery or a refusal is booked when its job is completed: BullMQ's worker calls `complete`, and
 *   delivery/complete.lua books it, completes the job and fetches the next one, in one step of Redis.
 *
 * 1. The ledger first, then the queue (invariant 3). If a booking fails, the job isn't moved, and its attempt is made again.
 * 2. A booking that Redis refuses is repeated until Redis accepts it (`BookingRetry`). A repeat books nothing a
 *    second time.
 * 3. Each attempt is reported once, after it was booked.
 * 4. A dead process leaves a job that BullMQ finds stalled. Its next attempt finds the outcome in the ledger, or is made
 *    again with the same idempotency key (invariant 4).
 */
import { setTimeout as wait } from "node:timers/promises";
import { redisErrorKind } from "@adrelay/core";
import type { CompletedJob, CompleteJobScript, JobToComplete } from "../bullmq/job-scripts.ts";
import type { Circuits } from "../circuit/circuits.ts";
import { ATTEMPTS_KEPT } from "../entry.ts";
import { Batcher } from "../redis/batcher.ts";
import { memberOf, type StoreKeys } from "../redis/keys.ts";
import {
  BOOKED_CODES,
  type BookedCode,
  decodeReply,
  listOf,
  readEach,
  type ScriptLibrary,
  type ScriptRunner,
} from "../redis/scripts.ts";
import type { StoreLog } from "../store-log.ts";
import { type PrefetchedEntry, parsePrefetched, type QueuedEntry } from "./attempt-start.ts";
import type { JobHead, Payload } from "./payload.ts";
import {
  argsOfFinal,
  argsOfSettlement,
  type ChannelNotice,
  type FinalSettlement,
  isFinal,
  type OpenSettlement,
  type ParkPlace,
  type Settlement,
} from "./settlement.ts";

/** An attempt that has begun: its job and its entry. */
export interface BegunAttempt {
  readonly job: JobHead;
  readonly entry: QueuedEntry;
  /** Redis' time when the attempt began, in milliseconds since 1970. */
  readonly nowMs: number;
}

/** An attempt that is due. Only making it needs the body. */
export interface DueAttempt extends BegunAttempt {
  readonly payload: Payload;
}

/** The result of making an attempt, or of not making one. */
export type AttemptResult =
  | MadeAttempt
  /** No attempt was made: Redis has no such job any more, or only without its body, and the ledger says why. */
  | { readonly kind: "payload_gone" }
  /** No attempt was made: the acknowledgment waits for its provider account. */
  | {
      readonly kind: "parked";
      /** Undefined if the publisher is gone from the settings, and has none. */
      readonly account: string | undefined;
      readonly place: ParkPlace;
      readonly notify: ChannelNotice | undefined;
    };

/** An attempt was made, and this is its outcome. */
interface MadeAttempt {
  readonly kind: "made";
  readonly settlement: Settlement;
  /** It was made to learn about the provider, so its failure doesn't count for the acknowledgment. */
  readonly isProbe: boolean;
  /** The error behind a failed call, for its report: a short code. */
  readonly cause?: string | undefined;
  /** The trace of the attempt, for its report. `recorded`: the trace in which it is kept. */
  readonly trace: { readonly own: string | undefined; readonly recorded: string | undefined };
  /** The provider's own code for what went wrong, for its report. */
  readonly providerError?: string | undefined;
  /** What is missing or wrong in the provider's answer, without its values. */
  readonly answerFault?: string | undefined;
}

/** An attempt whose outcome was booked, for its one log line and its metrics. */
export interface SettledAttempt {
  readonly due: BegunAttempt;
  readonly made: MadeAttempt;
  readonly booked: BookedCode;
}

/** What the queue is to do with a job. */
export type JobEnd =
  /** The payload leaves Redis. `finalAttempt` is booked in the same step; undefined if no attempt was made. */
  | { readonly kind: "completed"; readonly finalAttempt: FinalAttempt | undefined }
  | { readonly kind: "delayed"; readonly delayMs: number }
  /** The payload is kept for the dead letter. */
  | { readonly kind: "failed"; readonly reason: string };

/** An attempt that was delivered or refused. */
export interface FinalAttempt {
  readonly due: BegunAttempt;
  readonly made: MadeAttempt;
  readonly settlement: FinalSettlement;
}

export interface JobCompleterParts {
  /** On a connection that waits for Redis as long as it takes: a known outcome must be booked. */
  readonly scripts: ScriptRunner;
  readonly library: ScriptLibrary;
  readonly keys: StoreKeys;
  readonly recordRetentionMs: number;
  readonly deliveredRetentionMs: number;
  readonly circuits: Circuits;
  readonly bookingRetry: BookingRetry;
  onSettled(settled: SettledAttempt): void;
}

/** How long the job of a parked acknowledgment is delayed. If it was not released by then, it runs and asks again. */
export const PARKED_MAX_MS = 600_000;
/**
 * A death that wasn't booked: it was booked before, or the letter was replayed meanwhile. Or a payload that is gone. The
 * ledger is asked again.
 */
const BEGIN_AGAIN_MS = 1000;
/** Redis works on one call while the worker works on the replies of the other. */
const COMPLETING_CALLS_MAX = 2;

export class JobCompleter {
  readonly #parts: JobCompleterParts;
  readonly #settlements: Batcher<Settlement, BookedCode>;
  #completions: Batcher<Completion, Completed> | undefined;

  constructor(parts: JobCompleterParts) {
    this.#parts = parts;
    const { scripts, keys } = parts;
    this.#settlements = new Batcher(async (settlements) => {
      const replies = await scripts.run("delivery/settle", {
        keys: keys.forEntries(settlements.map(({ id }) => memberOf(id))),
        args: [...sharedArgsOf(parts), ...settlements.flatMap(argsOfSettlement)],
      });
      return readEach(replies, (reply) => decodeReply(BOOKED_CODES, reply));
    });
  }

  /**
   * Books a retry or a death, or parks. A delivery or a refusal is left to `complete`. Returns what the queue is to
   * do with the job.
   */
  async end(due: BegunAttempt, result: AttemptResult): Promise<JobEnd> {
    if (result.kind === "payload_gone") {
      return { kind: "delayed", delayMs: BEGIN_AGAIN_MS };
    }
    if (result.kind === "parked") {
      const { account, place, notify } = result;
      return this.#park(due.job, { account, place, notify });
    }
    const { settlement } = result;
    if (isFinal(settlement)) {
      return { kind: "completed", finalAttempt: { due, made: result, settlement } };
    }
    const booked = await this.#parts.bookingRetry.run(() => this.settle(settlement));
    this.#parts.onSettled({ due, made: result, booked });
    return this.#move(due.job, settlement, booked);
  }

  /** Books an outcome, without moving its job. */
  settle(settlement: Settlement): Promise<BookedCode> {
    return this.#settlements.submit(settlement);
  }

  #move(job: JobHead, settlement: OpenSettlement, booked: BookedCode): Promise<JobEnd> | JobEnd {
    if (settlement.event === "die") {
      return booked === "booked"
        ? { kind: "failed", reason: settlement.reason }
        : { kind: "delayed", delayMs: BEGIN_AGAIN_MS };
    }
    const { next } = settlement;
    return next.kind === "after_delay"
      ? { kind: "delayed", delayMs: next.delayMs }
      : // Parked last, so that an acknowledgment that always fails doesn't keep the breaker of its account open.
        this.#park(job, { account: next.account, place: { kind: "last" }, notify: undefined });
  }

  /**
   * Parks first, then delays the job. A crash in between leaves a job that stalls and is run again; the other way round
   * would leave a job that nothing brings back.
   */
  async #park(job: JobHead, parking: Pick<Parking, "account" | "place" | "notify">): Promise<JobEnd> {
    const member = { publisher: job.publisher, id: job.adResponseId };
    await this.#parts.circuits.park({ ...parking, member });
    return { kind: "delayed", delayMs: PARKED_MAX_MS };
  }

  /**
   * Books the final settlement, if there is one, completes the job and fetches the next one. Rejects if the booking
   * failed: then the job isn't completed. BullMQ calls this again if the connection failed.
   */
  async complete(
    job: JobToComplete,
    finalAttempt: FinalAttempt | undefined,
    script: CompleteJobScript,
  ): Promise<CompletedJob<PrefetchedEntry>> {
    const completion = { job, settlement: finalAttempt?.settlement };
    this.#completions ??= this.#openCompletions(script);
    const completions = this.#completions;
    const { booked, reply, prefetched } = await this.#parts.bookingRetry.run(() =>
      completions.submit(completion),
    );
    if (finalAttempt !== undefined && booked !== undefined) {
      this.#parts.onSettled({ due: finalAttempt.due, made: finalAttempt.made, booked });
    }
    return { reply, prefetched };
  }

  /** BullMQ's part of the script is known when the first job is completed. */
  #openCompletions({ lua, keys: queueKeys, jobPrefix }: CompleteJobScript): Batcher<Completion, Completed> {
    const { scripts, library, keys } = this.#parts;
    const script = library.compose("delivery/complete", { "bullmq/complete-job": lua });
    const scriptKeys = [...keys.forEntry(""), ...queueKeys];
    const shared = [...sharedArgsOf(this.#parts), keys.entryPrefix, jobPrefix];
    const completeAll = async (completions: readonly Completion[]) => {
      const requestedAtMs = performance.now();
      const args = [...shared, Date.now(), ...completions.flatMap(argsOfCompletion)];
      const replies = await scripts.runScript(script, { keys: scriptKeys, args });
      return readEach(replies, (reply) => readCompleted(reply, requestedAtMs));
    };
    return new Batcher(completeAll, { callsMax: COMPLETING_CALLS_MAX });
  }
}

/** The first arguments of delivery/settlement.lua. */
function sharedArgsOf({ deliveredRetentionMs, recordRetentionMs }: JobCompleterParts): number[] {
  return [deliveredRetentionMs, recordRetentionMs, ATTEMPTS_KEPT];
}

type Parking = Parameters<Circuits["park"]>[0];

interface Completion {
  readonly job: JobToComplete;
  readonly settlement: FinalSettlement | undefined;
}

interface Completed extends CompletedJob<PrefetchedEntry> {
  /** Undefined if there was nothing to book. */
  readonly booked: BookedCode | undefined;
}

function argsOfCompletion({ job: { id, token, fetchNext }, settlement }: Completion): (string | number)[] {
  return [id, token, fetchNext ? 1 : 0, ...argsOfFinal(settlement)];
}

function readCompleted(replied: unknown, requestedAtMs: number): Completed {
  const [booked, entry, reply] = listOf(replied);
  return {
    booked: booked === "" ? undefined : decodeReply(BOOKED_CODES, booked),
    reply,
    prefetched: entry === "" ? undefined : parsePrefetched(String(entry), requestedAtMs),
  };
}

interface BookingRetryOptions {
  readonly log: StoreLog;
  /** A process that stops doesn't book again: its jobs stall, and another worker runs them. */
  isStopping(): boolean;
}

const RETRY_AFTER_MS = 250;

/**
 * While Redis refuses writes (it is a replica, a save failed, replicas are missing), the outcomes of attempts wait here and
 * are booked again and again. If the jobs were released instead, the attempts would be made a second time. The waiting
 * jobs keep their slots, and Redis hands out no other jobs meanwhile, so no attempt is made that can't be booked.
 */
export class BookingRetry {
  readonly #options: BookingRetryOptions;
  #isRefused = false;

  constructor(options: BookingRetryOptions) {
    this.#options = options;
  }

  /** Books until Redis accepts it. Rejects with any error but a refusal, and with the refusal at a stop. */
  async run<T>(book: () => Promise<T>): Promise<T> {
    for (let wasRefused = false; ; wasRefused = true) {
      try {
        const reply = await book();
        if (wasRefused) {
          this.#logTaken();
        }
        return reply;
      } catch (error) {
        if (!isRefusal(error) || this.#options.isStopping()) {
          throw error;
        }
        this.#logRefusal(error);
        await wait(RETRY_AFTER_MS);
      }
    }
  }

  #logRefusal(err: unknown): void {
    if (!this.#isRefused) {
      this.#options.log.warn({ event: "booking_refused", err });
    }
    this.#isRefused = true;
  }

  #logTaken(): void {
    if (this.#isRefused) {
      this.#options.log.info({ event: "booking_resumed" });
    }
    this.#isRefused = false;
  }
}

/** Whether Redis may accept the same command later. */
function isRefusal(error: unknown): boolean {
  const kind = redisErrorKind(error);
  return kind === "refuses_writes" || kind === "no_permission";
}
