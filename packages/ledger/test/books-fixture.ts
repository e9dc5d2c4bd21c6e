import { randomUUID } from "node:crypto";
import { type AdResponseId, adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import type { EntryEvent, EntryState } from "@adrelay/core";
import type { Redis } from "ioredis";
import { DeadLetters, Ledger, type Settlement } from "../src/index.ts";

export const publisher = publisherIdSchema.parse("acme");
export const LONG_MS = 60_000;

/** Books of their own, and what the parts of the relay do to them. */
export interface BooksFixture {
  readonly ledger: Ledger;
  readonly deadLetters: DeadLetters;
  readonly partition: string;
  newId(): AdResponseId;
  /** Books it as a worker does. */
  accept(id: AdResponseId, textHash?: string): ReturnType<Ledger["begin"]>;
  settle(
    id: AdResponseId,
    event: Settlement["event"],
    more?: Partial<Settlement>,
  ): ReturnType<Ledger["settle"]>;
}

export function openBooks(redis: Redis): BooksFixture {
  const partition = randomUUID();
  const options = { redis, recordRetentionMs: LONG_MS, partition };
  const ledger = new Ledger(options);
  const payload = { key: `{adrelay:${partition}}:payload`, field: "name" };
  return {
    ledger,
    deadLetters: new DeadLetters(options),
    partition,
    newId: () => adResponseIdSchema.parse(randomUUID()),
    accept: async (id, textHash = "hash") => {
      await redis.hset(payload.key, payload.field, textHash);
      return ledger.begin({ id, publisher, textHash, payload });
    },
    settle: async (id, event, more = {}) =>
      ledger.settle({
        id,
        attemptsBefore: (await ledger.find(id))?.attempts ?? 0,
        event,
        label: event === "deliver" ? "ok" : event === "die" ? "http_400" : "",
        code: "code",
        providerAckId: undefined,
        durationMs: 5,
        delayMs: 1000,
        isCounted: true,
        notify: undefined,
        ...more,
      }),
  };
}

/** Carries an event out, as the parts of the relay do. */
export async function fire(
  { ledger, deadLetters, accept, settle }: BooksFixture,
  id: AdResponseId,
  event: EntryEvent,
): Promise<void> {
  switch (event) {
    case "record_filled":
      await ledger.recordInjection({ id, publisher, outcome: "ok", deadlineMs: 0 });
      return;
    case "record_unfilled":
      await ledger.recordInjection({ id, publisher, outcome: "no_fill", deadlineMs: 0 });
      return;
    case "record_abandoned":
      await ledger.recordInjection({ id, publisher, outcome: "abandoned", deadlineMs: 0 });
      return;
    case "accept":
      await accept(id);
      return;
    case "deliver":
    case "refuse":
    case "retry":
    case "die":
      await settle(id, event);
      return;
    case "miss":
      await ledger.sweepMissed(1000);
      return;
    case "replay":
      await deadLetters.replay(id, "alice");
      return;
    case "discard":
      await deadLetters.discard(id, "alice", "gone stale");
      return;
    case "expire":
      await ledger.sweepExpired(1000, 0);
      return;
    default:
      event satisfies never;
  }
}

/** Events that lead a fresh id into each state. */
export const PATHS: Record<EntryState, readonly EntryEvent[]> = {
  absent: [],
  awaiting: ["record_filled"],
  queued: ["record_filled", "accept"],
  delivered: ["record_filled", "accept", "deliver"],
  refused: ["record_filled", "accept", "refuse"],
  dead: ["record_filled", "accept", "die"],
  missed: ["record_filled", "miss"],
  discarded: ["record_filled", "accept", "die", "discard"],
  expired: ["record_filled", "accept", "die", "expire"],
  unacknowledgeable: ["record_unfilled"],
  abandoned: ["record_abandoned"],
};
