/**
 * Bulk discards of queued acknowledgments. No index holds those of one publisher, or those with unknown ids, alone. So each step
 * searches a bounded part of the queued ones, newest first, and discards what it finds; see dead-letters/discard-queued.lua.
 * The records are those of bulk discards, and are listed, shown and cancelled as these are.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { DeliveryQueue } from "../bullmq/queue.ts";
import { idOf } from "../redis/keys.ts";
import {
  type BulkBatch,
  BulkChanges,
  type BulkParts,
  batchSchema,
  type CoveredCount,
} from "./bulk-changes.ts";
import type { DiscardOrder } from "./bulk-kinds.ts";
import { type BulkDiscard, type BulkState, parseDiscard } from "./bulk-record.ts";
import { type DeadFilter, type ListPlace, type ListQuestion, loadMembers } from "./listing.ts";

/** Which queued acknowledgments: they were queued at `sinceMs` or later, before `untilMs`. */
type QueuedFilter = Pick<DeadFilter, "publisher" | "onlyUnknown" | "sinceMs" | "untilMs">;

interface QueuedDiscardOrder extends Omit<DiscardOrder, "filter"> {
  readonly filter: QueuedFilter;
}

interface QueuedDiscardStep {
  readonly members: readonly string[];
  readonly next: string;
  readonly graceMs: number;
}

export interface QueuedDiscardsParts extends BulkParts {
  readonly queue: Pick<DeliveryQueue, "payloadKey">;
}

/** Only dead letters are found by these. */
const NO_DEATH = { reason: undefined, code: undefined } as const;
const EVERY_QUEUED = { state: "queued", ...NO_DEATH } as const;

/** Data of jobs that one call reads. With more, Redis would be held up for too long. */
const JOB_BYTES_MAX = 2 * 1024 * 1024;
const stepSchema = z.tuple([...batchSchema.def.items, z.number()]);
const COUNT_ROWS = 1000;
/** A caller waits for the count. */
const COUNT_MAX_MS = 400;
/** The place in a record once all was searched: what attempts held is left. */
const HELD = "held";

export class QueuedDiscards extends BulkChanges<BulkDiscard> {
  readonly #parts: QueuedDiscardsParts;

  constructor(parts: QueuedDiscardsParts) {
    super("discard_queued", parts);
    this.#parts = parts;
  }

  /** How many one would cover. If they must be searched, and that takes longer than the limit, only some are counted. */
  override async count(filter: QueuedFilter, limitMs: number = COUNT_MAX_MS): Promise<CoveredCount> {
    const { redis, keys } = this.#parts;
    const dry = { filter, by: "", why: "" };
    const { beforeMs } = await this.#startOrCount("", dry, { queued: 0, mode: "dry" });
    const untilMs = Math.min(filter.untilMs ?? beforeMs, beforeMs);
    if (filter.publisher === undefined && filter.onlyUnknown !== true) {
      const matched = await redis.zcount(keys.queued, filter.sinceMs ?? "-inf", `(${untilMs}`);
      return { matched, isComplete: true, beforeMs };
    }
    const endMs = performance.now() + limitMs;
    let [matched, after]: [number, ListPlace | undefined] = [0, undefined];
    do {
      const page = await this.#search({ ...filter, untilMs }, after, COUNT_ROWS);
      matched += page.members.length;
      after = page.next;
    } while (after !== undefined && performance.now() < endMs);
    return { matched, isComplete: after === undefined, beforeMs };
  }

  /** Starts one; resolves with its id. */
  async start(order: QueuedDiscardOrder): Promise<string> {
    const id = randomUUID();
    const { matched } = await this.count(order.filter);
    await this.#startOrCount(id, order, { queued: matched, mode: "" });
    return id;
  }

  /** The next step, in a script or a few. It moves at most `limit`. What attempts held is tried again once everything else is done. */
  override async runBatch(id: string, limit: number, graceMs: number): Promise<BulkBatch> {
    const { members, next } = await this.#findNext(id, limit);
    let { state, tasks, atUs, seen } = await this.#discard(id, { members, next, graceMs });
    const moved = [...tasks];
    for (let left = members.slice(seen); state === "running" && left.length > 0; left = left.slice(seen)) {
      ({ state, tasks, seen } = await this.#discard(id, { members: left, next, graceMs }));
      moved.push(...tasks);
    }
    return { state: state === "" ? "unknown" : state, moved, hasMore: next !== HELD, atUs };
  }

  async #discard(id: string, { members, next, graceMs }: QueuedDiscardStep) {
    const { run, keys, queue, recordRetentionMs } = this.#parts;
    const reply = await run("dead-letters/discard-queued", {
      keys: keys.forBulk("discard_queued", id),
      args: [
        ...[id, keys.entryPrefix, keys.parkedPrefix, graceMs, recordRetentionMs, next, JOB_BYTES_MAX],
        ...members.flatMap((member) => [member, queue.payloadKey(idOf(member))]),
      ],
    });
    const [state, tasks, atUs, seen] = stepSchema.parse(reply);
    return { state, tasks, atUs, seen };
  }

  protected override parse(id: string, reply: unknown): BulkDiscard | undefined {
    return parseDiscard(id, reply);
  }

  protected override logEnd(id: string, state: BulkState): void {
    if (state === "completed") {
      this.#parts.log.info({ event: "discard_completed", discard_id: id });
    }
  }

  /** What the next step looks at. Nothing of a discard that is over: the script then says so. */
  async #findNext(
    id: string,
    limit: number,
  ): Promise<{ readonly members: readonly string[]; readonly next: string }> {
    const { redis, keys } = this.#parts;
    const key = keys.bulkPrefix.discard_queued + id;
    const [last, place] = await redis.hmget(key, "last", "place");
    const found = await this.find(id);
    if (found === undefined || place === HELD) {
      const held = await redis.smembers(`${key}:held`);
      return { members: held.slice(0, limit), next: HELD };
    }
    const endMs = Number(last) + 1;
    const filter = { ...found.filter, untilMs: Math.min(found.filter.untilMs ?? endMs, endMs) };
    const page = await this.#search(filter, parsePlace(place ?? ""), limit);
    return {
      members: page.members,
      next: page.next === undefined ? HELD : `${page.next.timeMs}.${page.next.member}`,
    };
  }

  #search(filter: QueuedFilter, after: ListPlace | undefined, limit: number) {
    const question: ListQuestion = { ...filter, ...EVERY_QUEUED, after, limit };
    return loadMembers(this.#parts, question);
  }

  #startOrCount(
    id: string,
    { filter, by, why }: QueuedDiscardOrder,
    { queued, mode }: { readonly queued: number; readonly mode: "" | "dry" },
  ): Promise<CoveredCount> {
    const of = EVERY_QUEUED.state;
    const order = { filter: { ...filter, ...NO_DEATH }, by };
    return this.startOrCount(id, { ...order, details: { why, of }, fields: { of }, queued }, mode);
  }
}

function parsePlace(text: string): ListPlace | undefined {
  if (text === "") {
    return undefined;
  }
  const [timeMs, member = ""] = text.split(".");
  return { timeMs: Number(timeMs), member };
}
