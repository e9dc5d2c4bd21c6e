/** What this process counts of turns. All other counts of turns are in the ledger. */
import { Counter, type Registry } from "prom-client";

export interface TurnMetrics {
  readonly truncated: Pick<Counter, "inc">;
  readonly lostText: Pick<Counter, "inc">;
  readonly lateText: Pick<Counter, "inc">;
  readonly droppedPrompts: Pick<Counter, "inc">;
}

export function createTurnMetrics(registry: Registry): TurnMetrics {
  const counter = (name: string, help: string) => new Counter({ name, help, registers: [registry] });
  return {
    truncated: counter(
      "adrelay_turns_truncated_total",
      "Steps of turns whose text was longer than PROXY_TEXT_LIMIT_BYTES. What was over the limit is not acknowledged.",
    ),
    lostText: counter(
      "adrelay_turns_lost_text_total",
      "Turns of which written text is not acknowledged, because Redis was away and this process stopped or had no room for more (PROXY_JOURNAL_BYTES).",
    ),
    lateText: counter(
      "adrelay_turns_late_text_total",
      "Turns of which text was written after they had ended: this process stood still for longer than its lease, or the backend acknowledged first.",
    ),
    droppedPrompts: counter(
      "adrelay_turns_dropped_prompts_total",
      "Times that a turn's prompt was not kept for a next step or a retry: it is longer than 1 MiB, or those of its publisher take 5 % of Redis' memory. Such a step gets no ad.",
    ),
  };
}
