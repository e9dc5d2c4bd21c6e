/**
 * Accepts acknowledgments: looks each one up, queues it and books it, in one step of Redis (intake/accept.lua).
 *
 * 1. All acknowledgments of one turn of the event loop go together, at most twelve in a call. If four calls are under way,
 *    further acknowledgments are held for at most 2 ms (docs/adr/0031).
 * 2. A large text is sent only after a call without it has found that there is room. So a flood of refused ones costs Redis
 *    and the other publishers nearly nothing.
 * 3. A rejected `accept` means that the fate is unknown: the acknowledgment may be queued and booked. A repeat then gets
 *    its present state (invariant 1).
 */
import type { AdResponseId, DeliveryJob, PublisherId } from "@adrelay/contract";
import { z } from "zod";
import { type DeliveryQueue, JOB_OPTIONS_TEXT } from "../bullmq/queue.ts";
import { type LedgerEntry, parseEntry } from "../entry.ts";
import { Batcher } from "../redis/batcher.ts";
import { jobIdOf, memberOf, type StoreKeys } from "../redis/keys.ts";
import {
  ACCEPT_CODES,
  type AcceptCode,
  decodeReply,
  type RunScript,
  readEach,
  StoreReplyError,
} from "../redis/scripts.ts";
import { type IntakeRoom, type IntakeRulesOf, limitArg, type OverQuota, STORED_QUOTAS } from "./rules.ts";

/** An acknowledgment to be accepted. */
export interface AcceptRequest {
  /** What the worker delivers. It names the ad response and the publisher. */
  readonly job: DeliveryJob;
  /** Fingerprint of the acknowledgment's text: a repeat has the same one. */
  readonly textHash: string;
}

export type AcceptResult =
  | {
      readonly kind: AcceptedKind;
      readonly acceptedAtMs: number;
      /** When its injection was recorded; undefined if the ledger knows of none. */
      readonly recordedAtMs: number | undefined;
    }
  | { readonly kind: "repeat"; readonly entry: LedgerEntry }
  | OverQuota
  /** Nothing was accepted. `no_room`: Redis' memory is kept for others. */
  | {
      readonly kind: Exclude<
        AcceptCode,
        AcceptedKind | "repeat" | "over_quota" | "has_room" | "payload_missing"
      >;
    };
/** `has_room`: nothing was accepted, because the call only asked. */
type CallResult = AcceptResult | { readonly kind: "has_room" };
type AcceptedKind = "accepted" | "accepted_late" | "accepted_unknown";

export interface AcceptorParts {
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly queue: Pick<DeliveryQueue, "addingKeys" | "jobPrefix">;
  readonly rulesOf: IntakeRulesOf;
  readonly roomNow: () => IntakeRoom;
}

/** All texts of a call go in one write, so the call is bounded. */
const CHARACTERS_MAX = 1_000_000;
const CALLS_MAX = 4;

/** Acknowledgments with longer bodies ask first. */
const ASK_FIRST_CHARACTERS = 65_536;

interface Prepared {
  readonly request: AcceptRequest;
  /** The job's data; for a question only their size. */
  readonly data: string | Buffer;
}

export class Acceptor {
  readonly #batcher: Batcher<Prepared, CallResult>;

  constructor({ run, keys, queue, rulesOf, roomNow }: AcceptorParts) {
    const scriptKeys = [...keys.forEntry(""), ...queue.addingKeys, keys.turns];
    const shared = [keys.entryPrefix, queue.jobPrefix, JOB_OPTIONS_TEXT];
    const acceptAll = async (prepared: readonly Prepared[]) => {
      const { knownBytes, unknownBytes } = roomNow();
      const publishers = [...new Set(prepared.map(({ request }) => request.job.publisher))];
      const args = [
        ...shared,
        limitArg(knownBytes),
        limitArg(unknownBytes),
        publishers.length,
        ...publishers.flatMap((publisher) => rulesArgs(publisher, rulesOf)),
        ...prepared.flatMap(argsOf),
      ];
      const replies = await run("intake/accept", { keys: scriptKeys, args });
      return readEach(replies, (reply, at) => readReply(reply, prepared[at]?.request.job.adResponseId));
    };
    this.#batcher = new Batcher(acceptAll, {
      sizeOf: ({ data }) => data.length,
      sizeMax: CHARACTERS_MAX,
      callsMax: CALLS_MAX,
    });
  }

  /** Accepts one acknowledgment, or says why not. */
  async accept(request: AcceptRequest): Promise<AcceptResult> {
    const { body } = request.job;
    if (body.length > ASK_FIRST_CHARACTERS) {
      // Escapes make the data longer. The second call checks again, by the exact size.
      const answer = await this.#batcher.submit({ request, data: String(Buffer.byteLength(body)) });
      if (answer.kind !== "has_room") {
        return answer;
      }
    }
    const accepted = await this.#batcher.submit({ request, data: dataOf(request.job) });
    if (accepted.kind === "has_room") {
      throw new StoreReplyError("intake/accept.lua answered an acknowledgment as a question");
    }
    return accepted;
  }
}

/**
 * The text that the queue keeps. A long one is sent as bytes: ioredis would make another long text of it, and count and
 * encode that, while all other requests of the process wait.
 */
function dataOf(job: DeliveryJob): string | Buffer {
  const data = JSON.stringify(job);
  return data.length > ASK_FIRST_CHARACTERS ? Buffer.from(data) : data;
}

function rulesArgs(publisher: PublisherId, rulesOf: IntakeRulesOf): string[] {
  const { acceptsUnknown, limits } = rulesOf(publisher);
  return [publisher, acceptsUnknown ? "1" : "0", ...STORED_QUOTAS.map((quota) => limitArg(limits[quota]))];
}

function argsOf({ request: { job, textHash }, data }: Prepared): (string | Buffer)[] {
  const { adResponseId, publisher } = job;
  return [memberOf(adResponseId), publisher, textHash, jobIdOf(adResponseId), data];
}

function readReply(reply: unknown, id: AdResponseId | undefined): CallResult {
  if (Array.isArray(reply)) {
    return { kind: "repeat", entry: entryOf(id, reply) };
  }
  const [code, ...more] = String(reply).split(",");
  const [acceptedAt, recordedAt] = more;
  const kind = decodeReply(ACCEPT_CODES, code);
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
    case "over_quota":
      return overQuotaOf(more);
    case "conflict":
    case "not_acknowledgeable":
    case "other_publisher":
    case "no_room":
    case "has_room":
    case "unknown":
      return { kind };
    case "payload_missing":
      throw new StoreReplyError("intake/accept.lua replied what only delivery/begin.lua does");
    default:
      return kind satisfies never;
  }
}

function entryOf(id: AdResponseId | undefined, fields: readonly unknown[]): LedgerEntry {
  const entry = id === undefined ? undefined : parseEntry(id, fields);
  if (entry === undefined) {
    throw new StoreReplyError("intake/accept.lua replied a repeat without its entry");
  }
  return entry;
}

const overQuotaSchema = z.tuple([z.enum(STORED_QUOTAS), z.coerce.number(), z.coerce.number()]);

function overQuotaOf(fields: readonly string[]): OverQuota {
  const [quota, limitBytes, usedBytes] = overQuotaSchema.parse(fields);
  return { kind: "over_quota", quota, limitBytes, usedBytes };
}
