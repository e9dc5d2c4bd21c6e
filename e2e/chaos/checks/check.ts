import { acknowledgedOf } from "@adrelay/store";
import type { AdEvidence } from "../evidence.ts";

/** One thing that must hold at the end of a run. */
export interface Check {
  readonly name: string;
  /** How many things were looked at: a check of nothing proves nothing. */
  readonly looked: number;
  /** What broke, with ids. */
  readonly broken: readonly string[];
}

/** Holds each ad that `concerns` picks to a rule, which answers with what is wrong. */
export function checkAds(
  name: string,
  ads: readonly AdEvidence[],
  concerns: (ad: AdEvidence) => boolean,
  rule: (ad: AdEvidence) => string | undefined,
): Check {
  const looked = ads.filter(concerns);
  const broken = looked.flatMap((ad) => {
    const wrong = rule(ad);
    return wrong === undefined ? [] : [`${ad.id}: ${wrong}; ${describeAd(ad)}`];
  });
  return { name, looked: looked.length, broken };
}

/** Holds pairs of numbers to being the same. */
export function checkSums(
  name: string,
  sums: readonly (readonly [what: string, left: number, right: number])[],
): Check {
  const broken = sums.flatMap(([what, left, right]) =>
    left === right ? [] : [`${what}: ${left} and ${right}`],
  );
  return { name, looked: sums.length, broken };
}

/** What is known of one ad, in a line: enough to find it in the logs and on the timeline. */
function describeAd({ account, sold, entry, posts, lane }: AdEvidence): string {
  const time = (atMs: number | undefined) =>
    atMs === undefined ? "never" : new Date(atMs).toISOString().slice(11, -1);
  const posted = posts.map(
    ({ atMs, verdict, fault }) => `${time(atMs)} ${verdict}${fault === undefined ? "" : ` (${fault})`}`,
  );
  return [
    `${account} ${lane?.origin ?? "answer lost"}`,
    `sold ${time(sold?.atMs)}`,
    `recorded ${time(entry?.injection?.recordedAtMs)}`,
    `accepted ${time(entry && acknowledgedOf(entry)?.acceptedAtMs)}`,
    `ended ${time(entry && "endedAtMs" in entry ? entry.endedAtMs : undefined)}`,
    `told ${[...(lane?.answers ?? [])].join("/")} in ${lane?.tries ?? 0} tries`,
    `posts ${posted.join(", ") || "none"}`,
  ].join(", ");
}
