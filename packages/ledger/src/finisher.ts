/**
 * Ends jobs: books the last word on an attempt, has the queue finish its job and fetch the next one, and looks at how that
 * one stands, in one step of Redis (scripts/finish.lua). Jobs of one turn of the event loop end together, twelve at most a
 * call; beside two calls under way they are held (docs/adr/0027).
 *
 * A rejected `finish` means that nothing is known to be booked, nor its job to be finished. If only the reply got lost,
 * asking again answers "same", and what the queue says of a job that it has no more.
 */
import { TurnBatch } from "@adrelay/turn-batch";
import type { Redis } from "ioredis";
import { argsOfLastWord, type BeginResult, parseBegin } from "./attempts.ts";
import { ATTEMPTS_KEPT } from "./entry.ts";
import { ledgerKeys } from "./keys.ts";
import type { Settlement } from "./ledger.ts";
import { BOOKED_CODES, type BookedCode, decodeReply, listOf, readEach } from "./reply-codes.ts";
import { loadScript, runScript } from "./scripts.ts";

/** How the queue finishes its jobs, as it tells it itself. */
export interface QueueCompletion {
  /**
   * Lua that defines `finishJob(keys, prefix, id, token, fetchNext, timestamp)`, which finishes a job and answers what the
   * queue makes of it, and `fetchedJob(answer)`, which returns the id of the ad response and the text's fingerprint of
   * the job that came with such an answer, or no ad response.
   */
  readonly lua: string;
  readonly keys: readonly string[];
  readonly jobPrefix: string;
}

export interface FinisherOptions {
  /** Waits for Redis as long as it takes: an outcome that is known must be booked. */
  readonly redis: Redis;
  readonly completion: QueueCompletion;
  /** How long the record of an ended ad response is kept. */
  readonly recordRetentionMs: number;
  /** One partition now, the queue's; tests use their own. */
  readonly partition?: string;
}

/** The settlement of an attempt that ends its acknowledgment for good. */
export type LastWord = Settlement & { readonly event: "deliver" | "refuse" };

export interface FinishRequest {
  readonly job: { readonly id: string; readonly token: string; readonly fetchNext: boolean };
  /** Undefined if the job ends without an attempt. */
  readonly settlement: LastWord | undefined;
}

export interface FinishResult {
  /** Undefined if there was nothing to book. */
  readonly booked: BookedCode | undefined;
  /** What `finishJob` answered; an Error if it raised one. The booking stands in any case. */
  readonly finished: unknown;
  /** How the job stands that was fetched; undefined if there is none, or if `Ledger.begin` must judge it. */
  readonly look: StandingLook | undefined;
}

/** How a queued acknowledgment stood whose text is the job's. Whether the job is its publisher's wasn't asked. */
export interface StandingLook {
  readonly publisher: string;
  readonly begun: BeginResult;
  /** When it was asked for, by this process' monotonic clock. */
  readonly askedAtMs: number;
}

const NOTHING_TO_BOOK = Array.from({ length: 8 }, () => "");

export class Finisher {
  readonly #finishes: TurnBatch<FinishRequest, FinishResult>;

  constructor({ redis, completion, recordRetentionMs, partition = "0" }: FinisherOptions) {
    const script = loadScript("finish", { "queue-completion": completion.lua });
    const ledger = ledgerKeys(partition);
    const keys = [...ledger.forScript(""), ...completion.keys];
    const shared = [recordRetentionMs, ATTEMPTS_KEPT, ledger.entryPrefix, completion.jobPrefix];
    const runAll = async (requests: readonly FinishRequest[]) => {
      const askedAtMs = performance.now();
      const args = [...shared, Date.now(), ...requests.flatMap(argsOf)];
      const replies = await runScript(redis, script, { keys, args });
      return readEach(replies, (reply) => readReply(reply, askedAtMs));
    };
    this.#finishes = new TurnBatch(runAll, { callsMax: 2 });
  }

  /** Ends one job. Rejects if its settlement could not be booked: then the job isn't finished. */
  finish(request: FinishRequest): Promise<FinishResult> {
    return this.#finishes.ask(request);
  }
}

function argsOf({ job: { id, token, fetchNext }, settlement }: FinishRequest): (string | number)[] {
  const booking = settlement === undefined ? NOTHING_TO_BOOK : argsOfLastWord(settlement);
  return [id, token, fetchNext ? 1 : 0, ...booking];
}

function readReply(reply: unknown, askedAtMs: number): FinishResult {
  const [booked, look, finished] = listOf(reply);
  return {
    booked: booked === "" ? undefined : decodeReply(BOOKED_CODES, booked),
    finished,
    look: look === "" ? undefined : readLook(String(look), askedAtMs),
  };
}

function readLook(text: string, askedAtMs: number): StandingLook {
  const publisher = text.slice(0, text.indexOf(","));
  return { publisher, begun: parseBegin(text.slice(publisher.length + 1)), askedAtMs };
}
