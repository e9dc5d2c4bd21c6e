/** What callers, ad service and ledger know of each turn in the end. */
import { adResponseIdSchema } from "@adrelay/contract";
import { type LedgerEntry, openStore } from "@adrelay/store";
import type { LogWatch } from "../log-watch.ts";
import type { AcknowledgmentRecord } from "./acknowledging.ts";
import type { TurnFaultSpan } from "./faults.ts";
import type { SoldAd, TurnsStack } from "./stack.ts";
import type { CallRecord } from "./stream-call.ts";
import type { StreamPlan } from "./streams.ts";
import type { StreamRecord } from "./traffic.ts";

export interface TurnEvidence {
  readonly id: string;
  readonly plan: StreamPlan;
  /** The calls whose callers were told of this ad response. Empty if no caller was. */
  readonly calls: readonly CallRecord[];
  /** Calls of the same stream whose callers got no headers, so that nobody was told what their ads were. */
  readonly untold: readonly CallRecord[];
  /** What backends have sent by themselves. */
  readonly sent: readonly AcknowledgmentRecord[];
  /** The texts that were posted to the ad service, each once. */
  readonly postedTexts: readonly string[];
  readonly posts: number;
  readonly entry: LedgerEntry | undefined;
}

export interface TurnsEvidence {
  readonly turns: readonly TurnEvidence[];
  readonly streams: readonly StreamRecord[];
  readonly sold: ReadonlyMap<string, SoldAd>;
  readonly spans: readonly TurnFaultSpan[];
  /** When an app said that it had lost Redis. On a busy machine, Redis may not answer for longer than its time limit. */
  readonly redisAway: LogWatch["redisAway"];
}

export async function gatherTurns(
  { admin, provider, sold, logs }: Pick<TurnsStack, "admin" | "provider" | "sold" | "logs">,
  streams: readonly StreamRecord[],
  spans: readonly TurnFaultSpan[],
): Promise<TurnsEvidence> {
  const store = openStore({ redis: admin, recordRetentionMs: 1 });
  const allCalls = streams.flatMap(({ calls }) => calls);
  const allAcknowledgments = streams.flatMap(({ acknowledgments }) => acknowledgments);
  const turns: TurnEvidence[] = [];
  for (const [id, ad] of sold) {
    const { plan, calls } = streamOf(streams, { id, ...ad });
    const posts = provider.acknowledgmentsOf(id);
    turns.push({
      id,
      plan,
      // Of all streams: another one's call would break a check.
      calls: allCalls.filter(({ adResponseId }) => adResponseId === id),
      untold: calls.filter(({ headersAtMs }) => headersAtMs === undefined),
      // A backend whose next step got the ad of an earlier turn acknowledges that one.
      sent: allAcknowledgments.filter(({ adResponseId }) => adResponseId === id),
      postedTexts: [...new Set(posts.map(({ fields }) => String(fields["llm_response"])))],
      posts: posts.length,
      entry: await store.acknowledgments.find(adResponseIdSchema.parse(id)),
    });
  }
  return { turns, streams, sold, spans, redisAway: logs.redisAway };
}

/** Streams of one session come one after the other. A proxy that was frozen may buy the ad of the first one after the second has begun. */
function streamOf(
  streams: readonly StreamRecord[],
  { id, session, atMs }: SoldAd & { readonly id: string },
): StreamRecord {
  const stream =
    streams.find(({ calls }) => calls.some(({ adResponseId }) => adResponseId === id)) ??
    streams.findLast(
      ({ plan, calls }) => plan.session === session && calls.some(({ startedAtMs }) => startedAtMs <= atMs),
    );
  if (stream === undefined) {
    throw new TypeError("an ad was asked for in the session of no stream");
  }
  return stream;
}
