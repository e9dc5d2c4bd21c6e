/** What operators do with single acknowledgments: replay and discard. And the audit of it. */
import type { AdResponseId } from "@adrelay/contract";
import type { Redis } from "ioredis";
import { z } from "zod";
import type { DeliveryQueue } from "../bullmq/queue.ts";
import { idOf, memberOf, type StoreKeys } from "../redis/keys.ts";
import { CHANGE_CODES, type ChangeCode, decodeReply, fieldsOf, type RunScript } from "../redis/scripts.ts";
import { type Outbox, outboxTaskSchema } from "./outbox.ts";

/** The result of a replay or a discard. */
export type ChangeResult =
  | {
      readonly kind: "booked";
      /** Resolves once the queue has followed, or once that was left to the workers. Never rejects. */
      readonly followed: Promise<void>;
    }
  | { readonly kind: Exclude<ChangeCode, "booked"> };

export interface DeadLettersParts {
  readonly redis: Redis;
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly queue: Pick<DeliveryQueue, "payloadKey">;
  readonly recordRetentionMs: number;
  readonly outbox: Outbox;
}

const changeSchema = z.tuple([z.number(), z.string()]);

export class DeadLetters {
  readonly #parts: DeadLettersParts;

  constructor(parts: DeadLettersParts) {
    this.#parts = parts;
  }

  /** Puts a dead letter back on the queue. `by` is the operator, for the audit. */
  async replay(id: AdResponseId, by: string): Promise<ChangeResult> {
    const { run, keys } = this.#parts;
    const member = memberOf(id);
    const scriptKeys = [...keys.forEntry(member), keys.audit];
    return this.#follow(await run("dead-letters/replay-one", { keys: scriptKeys, args: [member, by] }));
  }

  /**
   * Ends a dead letter or a queued acknowledgment for good, unless an attempt is under way. `by` and `reason` are for the
   * audit.
   */
  async discard(id: AdResponseId, by: string, reason: string): Promise<ChangeResult> {
    const { run, keys, queue, recordRetentionMs } = this.#parts;
    const member = memberOf(id);
    const reply = await run("dead-letters/discard", {
      keys: [...keys.forEntry(member), keys.audit, queue.payloadKey(id)],
      args: [member, recordRetentionMs, by, JSON.stringify({ reason }), keys.parkedPrefix],
    });
    return this.#follow(reply);
  }

  #follow(reply: unknown): ChangeResult {
    const [code, task] = changeSchema.parse(reply);
    const kind = decodeReply(CHANGE_CODES, code);
    return kind === "booked"
      ? { kind, followed: this.#parts.outbox.follow(outboxTaskSchema.parse(task)) }
      : { kind };
  }
}

const AUDIT_ACTIONS = [
  "replay",
  "discard",
  "replays_start",
  "replays_cancel",
  "replays_stop",
  "replays_end",
  "discards_start",
  "discards_cancel",
  "discards_end",
  "adopt",
  "erase",
] as const;

/** Who did what, and when. */
export interface AuditEntry {
  readonly atMs: number;
  readonly by: string;
  /** The address that the operator called from. Undefined for entries of older versions, and of the relay itself. */
  readonly address: string | undefined;
  /** Undefined if it concerns several publishers, and for entries of older versions. */
  readonly publisher: string | undefined;
  readonly action: (typeof AUDIT_ACTIONS)[number];
  readonly adResponseId: AdResponseId | undefined;
  readonly replayId: string | undefined;
  readonly discardId: string | undefined;
  /**
   * The reason of a discard or an erasure, and the state before it, and the session's hash of an erasure by session; the filter, rate and counts of a bulk replay or bulk discard; the
   * publishers and counts of an adoption.
   */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** Where the next page begins; undefined at the end. */
  readonly next: string | undefined;
}

/** A place in the audit is an id of a Redis stream. No stream has one below 0-1. */
export const AUDIT_PLACE = /^(?!0+-0+$)\d{1,19}-\d{1,19}$/;

const rowsSchema = z.array(z.tuple([z.string(), z.array(z.string())]));
const auditRowSchema = z.object({
  by: z.string(),
  action: z.enum(AUDIT_ACTIONS),
  id: z.string(),
  replay: z.string(),
  // Entries of older versions don't have these.
  discard: z.string().default(""),
  address: z.string().default(""),
  publisher: z.string().default(""),
  details: z.string(),
});

/** The audit. The script that makes a change also writes its audit entry. */
export class Audit {
  readonly #redis: Redis;
  readonly #key: string;

  constructor(redis: Redis, keys: StoreKeys) {
    this.#redis = redis;
    this.#key = keys.audit;
  }

  /** One page, newest first. `after`: the place where the page before it ended. */
  async page(limit: number, after: string | undefined): Promise<AuditPage> {
    const newest = after === undefined ? "+" : `(${after}`;
    const rows = rowsSchema.parse(await this.#redis.xrevrange(this.#key, newest, "-", "COUNT", limit + 1));
    const shown = rows.slice(0, limit);
    return {
      entries: shown.map(parseAudit),
      next: rows.length > limit ? shown.at(-1)?.[0] : undefined,
    };
  }
}

function parseAudit([place, flat]: z.infer<typeof rowsSchema>[number]): AuditEntry {
  const { by, action, id, details, ...row } = auditRowSchema.parse(fieldsOf(flat));
  return {
    atMs: Number(place.split("-")[0]),
    by,
    address: row.address || undefined,
    publisher: row.publisher || undefined,
    action,
    adResponseId: id === "" ? undefined : idOf(id),
    replayId: row.replay || undefined,
    discardId: row.discard || undefined,
    details: z.record(z.string(), z.unknown()).parse(JSON.parse(details)),
  };
}
