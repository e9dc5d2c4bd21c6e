/** What a check is, how it is made from rules, and how all checks are printed. */
import { acknowledgedOf } from "@adrelay/store";
import type { AdEvidence } from "../evidence.ts";

/** One thing that must hold at the end of a run. */
export interface Check {
  readonly name: string;
  /** How many things were checked: a check of nothing proves nothing. */
  readonly checked: number;
  /** What broke, with ids. */
  readonly broken: readonly string[];
}

/** Applies a rule to each ad that `concerns` selects. The rule returns what is wrong, or undefined. */
export function checkAds(
  name: string,
  ads: readonly AdEvidence[],
  concerns: (ad: AdEvidence) => boolean,
  rule: (ad: AdEvidence) => string | undefined,
): Check {
  const checked = ads.filter(concerns);
  const broken = checked.flatMap((ad) => {
    const wrong = rule(ad);
    return wrong === undefined ? [] : [`${ad.id}: ${wrong}; ${describeAd(ad)}`];
  });
  return { name, checked: checked.length, broken };
}

/** Checks that the numbers of each pair are equal. */
export function checkSums(
  name: string,
  sums: readonly (readonly [what: string, left: number, right: number])[],
): Check {
  const broken = sums.flatMap(([what, left, right]) =>
    left === right ? [] : [`${what}: ${left} and ${right}`],
  );
  return { name, checked: sums.length, broken };
}

/** What is known of one ad, in a line: enough to find it in the logs and among the faults. */
function describeAd({ account, sold, entry, posts, publisherRecord }: AdEvidence): string {
  const time = (atMs: number | undefined) =>
    atMs === undefined ? "never" : new Date(atMs).toISOString().slice(11, -1);
  const posted = posts.map(
    ({ atMs, decision, fault }) => `${time(atMs)} ${decision}${fault === undefined ? "" : ` (${fault})`}`,
  );
  return [
    `${account} ${publisherRecord?.origin ?? "answer lost"}`,
    `sold ${time(sold?.atMs)}`,
    `recorded ${time(entry?.injection?.recordedAtMs)}`,
    `accepted ${time(entry && acknowledgedOf(entry)?.acceptedAtMs)}`,
    `ended ${time(entry && "endedAtMs" in entry ? entry.endedAtMs : undefined)}`,
    `sent ${publisherRecord?.sendCount ?? 0} times and answered ${[...(publisherRecord?.answers ?? [])].join("/") || "never"}`,
    `posts ${posted.join(", ") || "none"}`,
  ].join(", ");
}

const SHOWN_MAX = 10;

/** A table of all checks, and below it what broke. */
export function formatChecks(checks: readonly Check[]): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const rows = checks.map(({ name, checked, broken }) =>
    [
      broken.length === 0 ? "held  " : "BROKEN",
      name.padEnd(width),
      String(checked).padStart(8),
      broken.length || "",
    ]
      .join("  ")
      .trimEnd(),
  );
  const broken = checks
    .filter((check) => check.broken.length > 0)
    .map((check) => {
      const shown = check.broken.slice(0, SHOWN_MAX).map((line) => `  - ${line}`);
      const more = check.broken.length - shown.length;
      return [`${check.name}:`, ...shown, ...(more > 0 ? [`  - and ${more} more`] : [])].join("\n");
    });
  return [...rows, ...broken.map((text) => `\n${text}`)].join("\n");
}

export const haveAllHeld = (checks: readonly Check[]) => checks.every(({ broken }) => broken.length === 0);
