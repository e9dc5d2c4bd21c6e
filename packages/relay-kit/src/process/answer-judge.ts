/** Starts what finds ads in the texts of turns: in the proxy, and in the worker, which settles turns whose proxy is gone. */
import type { FindAd } from "@adrelay/store";
import { AnswerJudge, type AnswerJudgeOptions } from "@adrelay/verdict/answer-judge";
import { OnceASecond } from "../once-a-second.ts";
import type { RelayBase } from "./relay-base.ts";

export async function startAnswerJudge(
  { log, lifecycle }: Pick<RelayBase, "log" | "lifecycle">,
  options: Pick<AnswerJudgeOptions, "collectMs"> = {},
): Promise<FindAd> {
  const failures = new OnceASecond<unknown>((err, count) =>
    log.warn({ event: "finding_failed", count, err }),
  );
  const judge = new AnswerJudge({ ...options, onFailed: (err) => failures.add(err) });
  lifecycle.onStopLast("reports of failed findings", () => failures.flush());
  await lifecycle.start("judge of answers", judge);
  return (text, ad, signal) => judge.find(text, ad, signal);
}
