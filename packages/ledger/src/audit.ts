/** Who did what to dead letters, and when. Entries are written by the scripts that did it. */
import type { AdResponseId } from "@adrelay/contract";
import type { Redis } from "ioredis";
import { z } from "zod";
import { fieldsOf } from "./entry.ts";
import { idOf, ledgerKeys } from "./keys.ts";
import type { LedgerOptions } from "./ledger.ts";

export const AUDIT_ACTIONS = ["replay", "discard", "replays_start", "replays_cancel"] as const;

export interface AuditEntry {
  readonly atMs: number;
  readonly by: string;
  readonly action: (typeof AUDIT_ACTIONS)[number];
  readonly adResponseId: AdResponseId | undefined;
  readonly replayId: string | undefined;
  /** A discard's reason, a bulk replay's filter and rate. */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** Where to go on; undefined at the end. */
  readonly next: string | undefined;
}

/** Places in the audit: ids of a Redis stream, which has none before 0-1. */
export const AUDIT_PLACE = /^(?!0+-0+$)\d{1,19}-\d{1,19}$/;

export class Audit {
  readonly #redis: Redis;
  readonly #key: string;

  constructor({ redis, partition = "0" }: LedgerOptions) {
    this.#redis = redis;
    this.#key = ledgerKeys(partition).audit;
  }

  /** One page, newest first, from after a place on. */
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

const rowsSchema = z.array(z.tuple([z.string(), z.array(z.string())]));
const entrySchema = z.object({
  by: z.string(),
  action: z.enum(AUDIT_ACTIONS),
  id: z.string(),
  replay: z.string(),
  details: z.string(),
});

function parseAudit([place, flat]: z.infer<typeof rowsSchema>[number]): AuditEntry {
  const { by, action, id, replay, details } = entrySchema.parse(fieldsOf(flat));
  return {
    atMs: Number(place.split("-")[0]),
    by,
    action,
    adResponseId: id === "" ? undefined : idOf(id),
    replayId: replay === "" ? undefined : replay,
    details: z.record(z.string(), z.unknown()).parse(JSON.parse(details)),
  };
}
