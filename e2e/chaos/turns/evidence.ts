/** What callers, ad service and ledger know of each turn in the end. */
import { adResponseIdSchema } from "@adrelay/contract";
import { type LedgerEntry, openStore } from "@adrelay/store";
import type { TurnFaultSpan } from "./faults.ts";
import type { TurnsStack } from "./stack.ts";
import type { CallRecord } from "./stream-call.ts";
import type { StreamPlan } from "./streams.ts";
import type { AcknowledgmentRecord, StreamRecord } from "./traffic.ts";

export interface TurnEvidence {
  readonly id: string;
  readonly plan: StreamPlan;
  /** The calls whose callers were told of this ad response. Empty if no caller was. */
  readonly calls: readonly CallRecord[];
  /** What the backend has sent by itself. */
  readonly sent: readonly AcknowledgmentRecord[];
  /** The texts that were posted to the ad service, each once. */
  readonly postedTexts: readonly string[];
  readonly posts: number;
  readonly entry: LedgerEntry | undefined;
}

export interface TurnsEvidence {
  readonly turns: readonly TurnEvidence[];
  readonly streams: readonly StreamRecord[];
  readonly spans: readonly TurnFaultSpan[];
}

export async function gatherTurns(
  { admin, provider, sold }: Pick<TurnsStack, "admin" | "provider" | "sold">,
  streams: readonly StreamRecord[],
  spans: readonly TurnFaultSpan[],
): Promise<TurnsEvidence> {
  const store = openStore({ redis: admin, recordRetentionMs: 1 });
  const turns: TurnEvidence[] = [];
  for (const [id, prompt] of sold) {
    const { plan, calls, acknowledgments } = streamOf(streams, prompt);
    const posts = provider.acknowledgmentsOf(id);
    turns.push({
      id,
      plan,
      calls: calls.filter(({ adResponseId }) => adResponseId === id),
      sent: acknowledgments.filter(({ adResponseId }) => adResponseId === id),
      postedTexts: [...new Set(posts.map(({ fields }) => String(fields["llm_response"])))],
      posts: posts.length,
      entry: await store.acknowledgments.find(adResponseIdSchema.parse(id)),
    });
  }
  return { turns, streams, spans };
}

function streamOf(streams: readonly StreamRecord[], prompt: string): StreamRecord {
  const stream = streams.find(({ plan }) => plan.prompt === prompt);
  if (stream === undefined) {
    throw new TypeError("an ad was asked for with the prompt of no stream");
  }
  return stream;
}
