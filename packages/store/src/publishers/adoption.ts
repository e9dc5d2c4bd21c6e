/**
 * Publishers that are gone from the settings: how many ad responses they left, and how another publisher adopts those.
 *
 * An adoption goes through the indexes in batches. Each batch is one audited script (publishers/adopt.lua), and its caller
 * gets the place to go on from. If a caller dies, another one may begin again from the start: what was adopted stays so.
 * What moves up in its index meanwhile is missed, such as a turn whose lease is renewed. So a caller looks at the end whether
 * the publisher has any left.
 */
import type { AdResponseId, PublisherId } from "@adrelay/contract";
import { z } from "zod";
import type { DeliveryQueue } from "../bullmq/queue.ts";
import { type ListingParts, type ListPlace, loadMembers } from "../dead-letters/listing.ts";
import type { LedgerSnapshot } from "../metrics/snapshot.ts";
import { idOf, memberOf } from "../redis/keys.ts";

/** States whose ad responses need their publisher. They move on in this order, so what moves on is met in its next state. */
const ADOPTED_STATES = ["awaiting", "queued", "dead"] as const;
type AdoptedState = (typeof ADOPTED_STATES)[number];

/** How many ad responses of each state need a publisher that is gone. */
type StrandedCounts = Readonly<Record<AdoptedState, number>>;

/** A publisher that has ad responses but isn't in the settings. */
export interface GonePublisher {
  readonly publisher: string;
  readonly counts: StrandedCounts;
}

/** Where a batch ended. */
export interface AdoptionPlace {
  readonly state: AdoptedState;
  /** Undefined at the begin of a state. */
  readonly after: ListPlace | undefined;
}

export interface AdoptionOrder {
  readonly from: PublisherId;
  readonly to: PublisherId;
  /** The operator, for the audit. */
  readonly by: string;
  /** Undefined for the first batch. */
  readonly place: AdoptionPlace | undefined;
  /** Most ad responses. */
  readonly limit: number;
}

export interface AdoptedBatch {
  readonly adopted: StrandedCounts;
  /** Left as they are, because an attempt holds their job. */
  readonly held: number;
  /** Undefined at the end. */
  readonly next: AdoptionPlace | undefined;
}

export interface AdoptionsParts extends ListingParts {
  readonly queue: Pick<DeliveryQueue, "payloadKey">;
}

/** Data of jobs that one call changes. With more, Redis would be held up for too long. */
const JOB_BYTES_MAX = 2 * 1024 * 1024;
const NO_FILTER = { reason: undefined, code: undefined, sinceMs: undefined, untilMs: undefined } as const;
const replySchema = z.tuple([z.number(), z.number(), z.number(), z.number(), z.number()]);

/** The publishers of a snapshot that need somebody: they aren't among the configured ones. */
export function gonePublishers(
  { states }: Pick<LedgerSnapshot, "states">,
  configured: readonly PublisherId[],
): GonePublisher[] {
  const known = new Set<string>(configured);
  const strays = states.filter(({ publisher, value }) => value > 0 && !known.has(publisher));
  const groups = Map.groupBy(strays, ({ publisher }) => publisher);
  return [...groups].flatMap(([publisher, own]) => {
    const countOf = (state: AdoptedState) => own.find(({ label }) => label === state)?.value ?? 0;
    const counts = { dead: countOf("dead"), queued: countOf("queued"), awaiting: countOf("awaiting") };
    return counts.dead + counts.queued + counts.awaiting > 0 ? [{ publisher, counts }] : [];
  });
}

export class Adoptions {
  readonly #parts: AdoptionsParts;

  constructor(parts: AdoptionsParts) {
    this.#parts = parts;
  }

  /** Adopts one batch, in a script or a few. Safe to repeat. */
  async adoptBatch(order: AdoptionOrder): Promise<AdoptedBatch> {
    const { from, limit } = order;
    const { state, after } = order.place ?? { state: ADOPTED_STATES[0], after: undefined };
    const page = await loadMembers(this.#parts, { ...NO_FILTER, state, publisher: from, limit, after });
    const sum = { dead: 0, queued: 0, awaiting: 0, held: 0 };
    for (let left = page.members.map(idOf); left.length > 0; ) {
      const [seen, awaiting, queued, dead, held] = await this.#adopt(order, left);
      sum.awaiting += awaiting;
      sum.queued += queued;
      sum.dead += dead;
      sum.held += held;
      left = left.slice(seen);
    }
    const { held, ...adopted } = sum;
    return { adopted, held, next: placeAfter(state, page.next) };
  }

  async #adopt(
    { from, to, by }: AdoptionOrder,
    ids: readonly AdResponseId[],
  ): Promise<z.infer<typeof replySchema>> {
    const { run, keys, queue } = this.#parts;
    const reply = await run("publishers/adopt", {
      keys: [...keys.forEntry(""), keys.audit],
      args: [
        from,
        to,
        by,
        keys.entryPrefix,
        keys.parkedPrefix,
        JOB_BYTES_MAX,
        ...ids.flatMap((id) => [memberOf(id), queue.payloadKey(id)]),
      ],
    });
    return replySchema.parse(reply);
  }
}

function placeAfter(state: AdoptedState, after: ListPlace | undefined): AdoptionPlace | undefined {
  const following = ADOPTED_STATES[ADOPTED_STATES.indexOf(state) + 1];
  if (after !== undefined) {
    return { state, after };
  }
  return following === undefined ? undefined : { state: following, after: undefined };
}
