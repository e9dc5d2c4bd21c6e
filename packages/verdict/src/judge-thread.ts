/** What the thread of an AnswerJudge runs. */
import type { TurnAd } from "@adrelay/core";
import { findAd } from "./find-ad.ts";

export interface JudgeTask {
  readonly text: string;
  readonly ad: TurnAd;
}

export function runTask({ text, ad }: JudgeTask) {
  return findAd(text, ad);
}

// The first text takes many times as long as the next one, and its time would run out on a busy machine.
runTask({
  text: "Try the [Example 2](https://shop.example/2), an **example** <b>(Sponsored)</b>.\n\n- `code`\n",
  ad: { productName: "Example 2", landingUrl: "https://shop.example/2" },
});
