/**
 * Takes acknowledgments: looks each up, queues it and books it, in one step of Redis (scripts/take.lua). Those that come
 * in one turn of the event loop go together, twelve at most a call; beside four calls under way they are held
 * (docs/adr/0027).
 *
 * A rejected `take` means "fate unknown": it may be queued and booked. A repeat is then told how it stands.
 */
import type { AdResponseId, PublisherId } from "@adrelay/contract";
import { TurnBatch } from "@adrelay/turn-batch";
import type { Redis } from "ioredis";
import { type LedgerEntry, parseEntry } from "./entry.ts";
import { ledgerKeys, memberOf } from "./keys.ts";
import { decodeReply, LedgerReplyError, readEach, TAKE_CODES, type TakeCode } from "./reply-codes.ts";
import { loadScript, runScript } from "./scripts.ts";

/** How the queue wants its jobs, as it tells it itself. */
export interface QueueInsertion {
  /**
   * Lua that defines `queueJob(keys, prefix, id, name, data, timestamp)`, which adds a job unless there is one with
   * this id, and returns the name of the job that the queue holds then.
   */
  readonly lua: string;
  readonly keys: readonly string[];
  readonly jobPrefix: string;
}

export interface TakerOptions {
  readonly redis: Redis;
  readonly insertion: QueueInsertion;
  /** Whether an id that the ledger doesn't know is taken (UNKNOWN_ACK). */
  readonly takesUnknown: boolean;
  /** Bounds how long a call may take, from when it is sent: rejects once it is overdue. */
  readonly inTime: <T>(call: Promise<T>) => Promise<T>;
  /** One partition now, the queue's; tests use their own. */
  readonly partition?: string;
}

export interface TakeRequest {
  readonly id: AdResponseId;
  readonly publisher: PublisherId;
  /** The job's name as well. */
  readonly textHash: string;
  readonly job: { readonly id: string; readonly data: string };
}

export type TakeResult =
  | {
      readonly kind: AcceptedKind;
      readonly acceptedAtMs: number;
      /** When its injection was recorded; undefined if the ledger knows of none. */
      readonly recordedAtMs: number | undefined;
    }
  | { readonly kind: "repeat"; readonly entry: LedgerEntry }
  | { readonly kind: Exclude<TakeCode, AcceptedKind | "repeat"> };
type AcceptedKind = "accepted" | "accepted_late" | "accepted_unknown";

/** A call's texts go in one write. */
const CHARACTERS_MAX = 1_000_000;

export class Taker {
  readonly #takes: TurnBatch<TakeRequest, TakeResult>;

  constructor({ redis, insertion, takesUnknown, inTime, partition = "0" }: TakerOptions) {
    const script = loadScript("take", { "queue-insertion": insertion.lua });
    const ledger = ledgerKeys(partition);
    const keys = [...ledger.forScript(""), ...insertion.keys];
    const shared = [ledger.entryPrefix, insertion.jobPrefix, takesUnknown ? 1 : 0];
    const runAll = async (requests: readonly TakeRequest[]) => {
      const args = [...shared, ...requests.flatMap(argsOf)];
      const replies = await inTime(runScript(redis, script, { keys, args }));
      return readEach(replies, (reply, at) => readReply(reply, requests[at]?.id));
    };
    this.#takes = new TurnBatch(runAll, {
      sizeOf: ({ job }) => job.data.length,
      sizeMax: CHARACTERS_MAX,
      callsMax: 4,
    });
  }

  /** Takes one acknowledgment, or tells why not. */
  take(request: TakeRequest): Promise<TakeResult> {
    return this.#takes.ask(request);
  }
}

function argsOf({ id, publisher, textHash, job }: TakeRequest): string[] {
  return [memberOf(id), publisher, textHash, job.id, job.data];
}

function readReply(reply: unknown, id: AdResponseId | undefined): TakeResult {
  if (Array.isArray(reply)) {
    return { kind: "repeat", entry: entryOf(id, reply) };
  }
  const [code, acceptedAt, recordedAt] = String(reply).split(",");
  const kind = decodeReply(TAKE_CODES, code);
  switch (kind) {
    case "accepted":
    case "accepted_late":
    case "accepted_unknown":
      return {
        kind,
        acceptedAtMs: Number(acceptedAt),
        recordedAtMs: recordedAt === "" ? undefined : Number(recordedAt),
      };
    case "repeat":
      return { kind, entry: entryOf(id, []) };
    case "conflict":
    case "not_acknowledgeable":
    case "other_publisher":
    case "payload_missing":
    case "unknown":
      return { kind };
    default:
      return kind satisfies never;
  }
}

function entryOf(id: AdResponseId | undefined, fields: readonly unknown[]): LedgerEntry {
  const entry = id === undefined ? undefined : parseEntry(id, fields);
  if (entry === undefined) {
    throw new LedgerReplyError("the ledger told of a repeat and sent no entry");
  }
  return entry;
}
