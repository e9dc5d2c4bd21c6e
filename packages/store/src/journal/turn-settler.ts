/**
 * Settles turns: makes the acknowledgment's text of what all steps have written, and queues it (journal/settle.lua).
 *
 * 1. The text is made outside Redis. The script does nothing if the journal has changed meanwhile, and it is read again.
 * 2. A turn of one step needs no reading: its text is in the memory of its process.
 * 3. Safe to repeat: a turn that was settled has ended.
 * 4. What is found of the ad in the text goes into the entry and is counted in the same step.
 * 5. A Redis that came back older than it was may not know the ad response. Then its acknowledgment is one of an unknown id.
 */
import {
  type AdResponseId,
  DELIVERY_JOB_VERSION,
  type DeliveryJob,
  type PublisherId,
  publisherIdSchema,
} from "@adrelay/contract";
import { type Finding, type TurnAd, UNKNOWN_FINDING, writeFinding } from "@adrelay/core";
import type { Redis } from "ioredis";
import { type DeliveryQueue, JOB_OPTIONS_TEXT } from "../bullmq/queue.ts";
import type { Acceptor } from "../intake/accept.ts";
import { ackIdOf, textHashOf } from "../intake/fingerprints.ts";
import type { IntakeRulesOf } from "../intake/rules.ts";
import { Batcher } from "../redis/batcher.ts";
import { jobIdOf, memberOf, type StoreKeys } from "../redis/keys.ts";
import {
  decodeReply,
  type RunScript,
  readEach,
  SETTLED_CODES,
  type SettledCode,
  StoreRefusalError,
} from "../redis/scripts.ts";
import { type StepText, type TurnText, turnTextOf } from "./text.ts";
import type { StepOutcome } from "./types.ts";

export interface TurnSettlerParts {
  readonly redis: Redis;
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly queue: Pick<DeliveryQueue, "addingKeys" | "jobPrefix">;
  readonly rulesOf: IntakeRulesOf;
  readonly recordRetentionMs: number;
  readonly acceptor: Pick<Acceptor, "accept">;
  readonly findAd: FindAd;
}

/** Finds an ad in a text. Never rejects, and answers in bounded time, or once the signal fires. */
export type FindAd = (text: string, ad: TurnAd | undefined, signal?: AbortSignal) => Promise<Finding>;

/** A turn that is to be settled. */
export interface TurnToSettle {
  readonly id: AdResponseId;
  readonly requestId: string;
  readonly traceparent: DeliveryJob["traceparent"];
  /** The step that has just ended; undefined for a worker. */
  readonly own: OwnStep | undefined;
}

interface OwnStep extends StepText {
  readonly outcome: StepOutcome;
  readonly publisher: PublisherId;
  /** What was found in its text. */
  readonly finding: Finding | undefined;
}

/** What the journal has of a turn. */
interface ReadTurn {
  readonly publisher: PublisherId;
  readonly text: TurnText;
  readonly finding: Finding;
  /** Undefined if the journal wasn't read. */
  readonly pieces: number | undefined;
}

interface Prepared {
  readonly turn: TurnToSettle;
  readonly read: ReadTurn;
  /** Undefined if the turn is abandoned. */
  readonly job: DeliveryJob | undefined;
  readonly data: string;
}

export type Settled = Exclude<SettledCode, "unknown">;

/** All texts of a call go in one write, so the call is bounded. */
const CHARACTERS_MAX = 1_000_000;
const CALLS_MAX = 4;
/** How often the journal is read. Only a step that runs beside this one changes it. */
const READS_MAX = 5;

export class TurnSettler {
  readonly #parts: TurnSettlerParts;
  readonly #batcher: Batcher<Prepared, SettledCode>;

  constructor(parts: TurnSettlerParts) {
    this.#parts = parts;
    const { run, keys, queue, recordRetentionMs } = parts;
    const scriptKeys = [...keys.forEntry(""), ...queue.addingKeys, keys.turns];
    const settleAll = async (prepared: readonly Prepared[]) => {
      const shared = [keys.entryPrefix, queue.jobPrefix, JOB_OPTIONS_TEXT, recordRetentionMs];
      const args = [...shared, ...prepared.flatMap(argsOf)];
      const replies = await run("journal/settle", { keys: scriptKeys, args });
      return readEach(replies, (reply) => decodeReply(SETTLED_CODES, reply));
    };
    this.#batcher = new Batcher(settleAll, {
      sizeOf: ({ data }) => data.length,
      sizeMax: CHARACTERS_MAX,
      callsMax: CALLS_MAX,
    });
  }

  /** `changed`: other steps wrote all the time, so the turn isn't over. */
  async settle(turn: TurnToSettle): Promise<Settled> {
    let read = turn.own?.step === 1 ? unread(turn.own) : await this.#read(turn);
    for (let reads = 0; read !== undefined; reads += 1) {
      const prepared = this.#prepare(turn, read);
      const code = await this.#batcher.submit(prepared);
      if (code === "unknown") {
        return this.#acceptUnknown(prepared);
      } else if (code !== "changed" || reads === READS_MAX) {
        return code;
      }
      read = await this.#read(turn);
    }
    return "ended";
  }

  /** Rejects if there is no room for it now. */
  async #acceptUnknown({ job, read }: Prepared): Promise<"queued" | "ended"> {
    if (job === undefined) {
      return "ended";
    }
    const { kind } = await this.#parts.acceptor.accept({ job, textHash: hashOf(read) });
    switch (kind) {
      case "accepted":
      case "accepted_late":
      case "accepted_unknown":
        return "queued";
      case "repeat":
      case "conflict":
      case "not_acknowledgeable":
      case "other_publisher":
      case "unknown":
        return "ended";
      case "over_quota":
      case "no_room":
        throw new StoreRefusalError(`the acknowledgment of a turn that Redis has lost was refused: ${kind}`);
      default:
        return kind satisfies never;
    }
  }

  /** Undefined for a worker if the ledger doesn't know the ad response. */
  async #read({ id, own }: TurnToSettle): Promise<ReadTurn | undefined> {
    const { redis, keys, findAd } = this.#parts;
    const member = memberOf(id);
    const [owner, stored, ad] = await Promise.all([
      redis.hget(keys.entryPrefix + member, "p"),
      redis.lrange(keys.turnText(member), 0, -1),
      redis.hmget(keys.turn(member), "P", "U"),
    ]);
    const publisher = publisherIdSchema.safeParse(owner).data ?? own?.publisher;
    if (publisher === undefined) {
      return undefined;
    }
    const text = turnTextOf(stored, own);
    return { publisher, text, pieces: stored.length, finding: await findAd(text.text, readAd(ad)) };
  }

  #prepare(turn: TurnToSettle, read: ReadTurn): Prepared {
    const { publisher, text } = read;
    const isAbandoned = text.text === "" && this.#parts.rulesOf(publisher).emptyAnswers === "abandon";
    const job = isAbandoned ? undefined : jobOf(turn, read);
    return { turn, read, job, data: job === undefined ? "" : JSON.stringify(job) };
  }
}

function jobOf(
  { id, requestId, traceparent }: TurnToSettle,
  { publisher, text: { text } }: ReadTurn,
): DeliveryJob {
  return {
    v: DELIVERY_JOB_VERSION,
    adResponseId: id,
    adAckId: ackIdOf(id),
    publisher,
    body: JSON.stringify({ ad_response_id: id, llm_response: text }),
    requestId,
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

function unread(own: OwnStep): ReadTurn {
  const { publisher, finding = UNKNOWN_FINDING } = own;
  return { publisher, text: turnTextOf([], own), pieces: undefined, finding };
}

/** Undefined if the proxy knew nothing of the ad, or was of an older version. */
function readAd([productName, landingUrl]: readonly (string | null)[]): TurnAd | undefined {
  return productName ? { productName, landingUrl: landingUrl || undefined } : undefined;
}

function hashOf({ publisher, text }: ReadTurn): string {
  return textHashOf(publisher, text.text);
}

function argsOf({ turn: { id, own }, read, data }: Prepared): (string | number)[] {
  const { publisher, text, pieces } = read;
  return [
    memberOf(id),
    publisher,
    hashOf(read),
    jobIdOf(id),
    data,
    own?.step ?? "",
    own?.outcome ?? "",
    pieces ?? "",
    text.isUnreadable ? 1 : 0,
    writeFinding(read.finding),
  ];
}
