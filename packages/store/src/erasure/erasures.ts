/**
 * Erasures: what a user wrote leaves Redis at once, in any state (erasure/erase.lua).
 *
 * An erasure of a session is a search in steps. Each step erases what it finds, and its caller gets the place to go on from.
 * If a caller dies, another one may begin again from the start: what was erased stays so.
 */
import type { AdResponseId, PublisherId } from "@adrelay/contract";
import { z } from "zod";
import type { DeliveryQueue } from "../bullmq/queue.ts";
import { type Outbox, outboxTaskSchema } from "../dead-letters/outbox.ts";
import { idOf, jobIdOf, memberOf, type StoreKeys } from "../redis/keys.ts";
import {
  decodeReply,
  ERASE_CODES,
  type EraseCode,
  type RunScript,
  readEach,
  stateOf,
} from "../redis/scripts.ts";

export interface ErasureOrder {
  /** The operator, and the reason in the operator's words, for the audit. */
  readonly by: string;
  readonly reason: string;
}

export type ErasedResult =
  | { readonly kind: "unknown" }
  | {
      readonly kind: Exclude<EraseCode, "unknown">;
      /** The state afterwards. */
      readonly state: ReturnType<typeof stateOf>;
      /** The provider may be taking the text at this moment, and its answer will still be booked. */
      readonly isUnderWay: boolean;
    };

export interface SessionErasureOrder extends ErasureOrder {
  readonly publisher: PublisherId;
  /** The session's hash under each of the installation's keys. The first one names the session in the audit. */
  readonly hashes: readonly string[];
  /** Undefined for the first step. */
  readonly place: string | undefined;
}

export interface ErasedBatch {
  /** How many of this step had a text, or a trace of one. */
  readonly erased: number;
  /** How many have not been acknowledged, so that there is no text yet. */
  readonly withoutText: number;
  readonly underWay: number;
  /** Undefined at the end. */
  readonly next: string | undefined;
}

export interface ErasuresParts {
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly queue: Pick<DeliveryQueue, "jobPrefix">;
  readonly outbox: Outbox;
  readonly recordRetentionMs: number;
}

/**
 * A place in the search is a cursor of SCAN, after the id of the run of Redis that made it. Gateways of older versions leave
 * the id out.
 */
export const ERASURE_PLACE = /^(?:([0-9a-fA-F]{1,64})\.)?([1-9]\d{0,19})$/;
/** The cursor at the begin, and at the end. */
const NO_CURSOR = "0";

/** How many keys a script of the search looks at: about 1.5 ms of Redis. */
const KEYS_PER_SCRIPT = 300;
const SCRIPTS_PER_STEP = 10;
/** Texts in a script. A text may have a megabyte. */
const TEXTS_PER_SCRIPT = 20;

interface SearchPlace {
  readonly cursor: string;
  /** '' if it isn't known. */
  readonly run: string;
}

const foundSchema = z.tuple([z.string(), z.string(), z.array(z.string())]);

export class Erasures {
  readonly #parts: ErasuresParts;

  constructor(parts: ErasuresParts) {
    this.#parts = parts;
  }

  /** Erases one. Safe to repeat. */
  async erase(id: AdResponseId, order: ErasureOrder): Promise<ErasedResult> {
    const [result = { kind: "unknown" as const }] = await this.#eraseAll([id], order, {});
    return result;
  }

  /** Takes one step of the search for a session, and erases what it finds. Safe to repeat. */
  async eraseSession(order: SessionErasureOrder): Promise<ErasedBatch> {
    const results: ErasedResult[] = [];
    let place = parsePlace(order.place);
    for (let script = 0; script < SCRIPTS_PER_STEP; script += 1) {
      const { next, ids } = await this.#find(order, place);
      place = next;
      for (let at = 0; at < ids.length; at += TEXTS_PER_SCRIPT) {
        const some = ids.slice(at, at + TEXTS_PER_SCRIPT);
        results.push(...(await this.#eraseAll(some, order, { session: order.hashes[0] ?? "" })));
      }
      if (place.cursor === NO_CURSOR) {
        break;
      }
    }
    if (place.cursor === NO_CURSOR) {
      await this.#noteSearch(order);
    }
    return {
      erased: results.filter(({ kind }) => kind === "erased").length,
      withoutText: results.filter(({ kind }) => kind === "no_text").length,
      underWay: results.filter((one) => "isUnderWay" in one && one.isUnderWay).length,
      next: place.cursor === NO_CURSOR ? undefined : textOf(place),
    };
  }

  async #noteSearch({ by, publisher, reason, hashes }: SessionErasureOrder): Promise<void> {
    const { run, keys } = this.#parts;
    const details = JSON.stringify({ reason, session: hashes[0] ?? "", search: "ended" });
    await run("erasure/note-search", {
      keys: [...keys.forEntry(""), keys.audit],
      args: [by, publisher, details],
    });
  }

  /** The next place, and the session's ad responses among the keys that the script looked at. */
  async #find(
    { hashes, publisher }: SessionErasureOrder,
    { cursor, run: runOfRedis }: SearchPlace,
  ): Promise<{ readonly next: SearchPlace; readonly ids: readonly AdResponseId[] }> {
    const { run, keys } = this.#parts;
    const prefix = keys.entryPrefix;
    const reply = await run("erasure/find-session", {
      keys: [prefix],
      args: [cursor, runOfRedis, KEYS_PER_SCRIPT, `${prefix}*`, prefix.length, publisher, ...hashes],
    });
    const [nextCursor, nextRun, members] = foundSchema.parse(reply);
    return { next: { cursor: nextCursor, run: nextRun }, ids: [...new Set(members)].map(idOf) };
  }

  async #eraseAll(
    ids: readonly AdResponseId[],
    { by, reason }: ErasureOrder,
    details: Readonly<Record<string, string>>,
  ): Promise<ErasedResult[]> {
    const { run, keys, queue, outbox, recordRetentionMs } = this.#parts;
    const audited = JSON.stringify({ reason, ...details });
    const prefixes = [keys.entryPrefix, queue.jobPrefix, keys.parkedPrefix];
    const reply = await run("erasure/erase", {
      keys: [...keys.forEntry(""), keys.audit],
      args: [
        by,
        audited,
        recordRetentionMs,
        ...prefixes,
        ...ids.flatMap((id) => [memberOf(id), jobIdOf(id)]),
      ],
    });
    const replies = readEach(reply, readErased);
    const read = replies.flatMap((one) => (one instanceof Error ? [] : [one]));
    await Promise.all(read.flatMap(({ task }) => (task === undefined ? [] : outbox.follow(task))));
    const failure = replies.find((one) => one instanceof Error);
    if (failure !== undefined) {
      throw failure;
    }
    return read.map(({ result }) => result);
  }
}

function parsePlace(text: string | undefined): SearchPlace {
  const [, run = "", cursor = NO_CURSOR] = ERASURE_PLACE.exec(text ?? "") ?? [];
  return { cursor, run };
}

function textOf({ run, cursor }: SearchPlace): string {
  return run === "" ? cursor : `${run}.${cursor}`;
}

function readErased(reply: unknown) {
  const [code, state, held, task] = String(reply).split(",");
  const kind = decodeReply(ERASE_CODES, code);
  const result: ErasedResult =
    kind === "unknown" ? { kind } : { kind, state: stateOf(state), isUnderWay: held === "1" };
  return { result, task: task ? outboxTaskSchema.parse(task) : undefined };
}
