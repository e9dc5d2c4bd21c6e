/** What operators do with single dead letters, and the audit of it. */
import type { AdResponseId } from "@adrelay/contract";
import type { Redis } from "ioredis";
import { z } from "zod";
import { idOf, memberOf, type StoreKeys } from "../redis/keys.ts";
import {
  decodeReply,
  fieldsOf,
  LEAVE_DEAD_CODES,
  type LeaveDeadCode,
  type RunScript,
} from "../redis/scripts.ts";
import { type Outbox, outboxTaskSchema } from "./outbox.ts";

/** The result of a replay or a discard. */
export type LeaveDeadResult =
  | {
      readonly kind: "booked";
      /** Resolves once the queue has followed, or once that was left to the workers. Never rejects. */
      readonly followed: Promise<void>;
    }
  | { readonly kind: Exclude<LeaveDeadCode, "booked"> };

export interface DeadLettersParts {
  readonly redis: Redis;
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly recordRetentionMs: number;
  readonly outbox: Outbox;
}

interface LeaveDead {
  readonly id: AdResponseId;
  readonly event: "replay" | "discard";
  readonly by: string;
  readonly details: Readonly<Record<string, string>>;
}

const leaveDeadSchema = z.tuple([z.number(), z.string()]);

export class DeadLetters {
  readonly #parts: DeadLettersParts;

  constructor(parts: DeadLettersParts) {
    this.#parts = parts;
  }

  /** Puts a dead letter back on the queue. `by` is the operator, for the audit. */
  replay(id: AdResponseId, by: string): Promise<LeaveDeadResult> {
    return this.#leave({ id, event: "replay", by, details: {} });
  }

  /** Ends a dead letter for good. `by` and `reason` are for the audit. */
  discard(id: AdResponseId, by: string, reason: string): Promise<LeaveDeadResult> {
    return this.#leave({ id, event: "discard", by, details: { reason } });
  }

  async #leave({ id, event, by, details }: LeaveDead): Promise<LeaveDeadResult> {
    const { run, keys, recordRetentionMs, outbox } = this.#parts;
    const member = memberOf(id);
    const reply = await run("dead-letters/leave-dead", {
      keys: [...keys.forEntry(member), keys.audit],
      args: [member, event, recordRetentionMs, by, JSON.stringify(details)],
    });
    const [code, task] = leaveDeadSchema.parse(reply);
    const kind = decodeReply(LEAVE_DEAD_CODES, code);
    return kind === "booked" ? { kind, followed: outbox.follow(outboxTaskSchema.parse(task)) } : { kind };
  }
}

const AUDIT_ACTIONS = ["replay", "discard", "replays_start", "replays_cancel"] as const;

/** Who did what, and when. */
export interface AuditEntry {
  readonly atMs: number;
  readonly by: string;
  readonly action: (typeof AUDIT_ACTIONS)[number];
  readonly adResponseId: AdResponseId | undefined;
  readonly replayId: string | undefined;
  /** The reason of a discard; the filter and rate of a bulk replay. */
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
  const { by, action, id, replay, details } = auditRowSchema.parse(fieldsOf(flat));
  return {
    atMs: Number(place.split("-")[0]),
    by,
    action,
    adResponseId: id === "" ? undefined : idOf(id),
    replayId: replay === "" ? undefined : replay,
    details: z.record(z.string(), z.unknown()).parse(JSON.parse(details)),
  };
}
