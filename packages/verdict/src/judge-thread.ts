/** What the thread of an AnswerJudge runs. */
import type { Finding, TurnAd } from "@adrelay/core";
import { findSoughtAd, type SoughtAd, soughtAdOf } from "./find-ad.ts";

export interface JudgeTask {
  readonly text: string;
  readonly ad: TurnAd;
}

/** What is found in each text. A text on which the rules fail takes nothing from the others. */
export function runTask(tasks: readonly JudgeTask[]): (Finding | Error)[] {
  return tasks.map(({ text, ad }) => {
    try {
      return findSoughtAd(text, soughtAdFor(ad));
    } catch (error) {
      return error instanceof Error ? error : new TypeError(String(error));
    }
  });
}

/** The ads that were looked for last. Many answers have the same one. */
const SOUGHT_MAX = 256;
const sought = new Map<string, SoughtAd>();

function soughtAdFor(ad: TurnAd): SoughtAd {
  const key = JSON.stringify([ad.productName, ad.landingUrl]);
  const known = sought.get(key) ?? soughtAdOf(ad);
  sought.delete(key);
  sought.set(key, known);
  const [oldest] = sought.keys();
  if (sought.size > SOUGHT_MAX && oldest !== undefined) {
    sought.delete(oldest);
  }
  return known;
}

// The first text takes many times as long as the next one, and its time would run out on a busy machine.
runTask([
  {
    text: "Try the [Example 2](https://shop.example/2), an **example** <b>(Sponsored)</b>.\n\n- `code`\n",
    ad: { productName: "Example 2", landingUrl: "https://shop.example/2" },
  },
]);
