/** What became of the dead letters that a bulk replay put back, in words, and whether it helped. */
import type { OutcomesView, ReplayView } from "@adrelay/contract";

/** Such as `2 delivered, 3 dead again (http_422 3), 1 waiting`. Nothing until a dead letter was put back. */
export function describeOutcomes(outcomes: OutcomesView | null, { isShort = false } = {}): string[] {
  if (outcomes === null) {
    return [];
  }
  const { delivered, refused, discarded, dead, waiting } = outcomes;
  const rare = [
    ...(refused > 0 ? [`${refused} refused`] : []),
    ...(discarded > 0 ? [`${discarded} discarded`] : []),
  ];
  const parts = [
    `${delivered} delivered`,
    isShort ? `${sum(dead)} dead again` : describeDeaths(dead, " dead again"),
    ...rare,
    `${waiting} waiting`,
  ];
  return [parts.join(", ")];
}

/** Such as `3 (http_422 2, http_404 1)`. `word` comes after the number. */
export function describeDeaths(dead: OutcomesView["dead"], word = ""): string {
  const most = Object.entries(dead).toSorted(([, a], [, b]) => b - a);
  const reasons = most.map(([reason, count]) => `${reason} ${count}`);
  return `${sum(dead)}${word}${reasons.length === 0 ? "" : ` (${reasons.join(", ")})`}`;
}

/** The share of failures at which a replay didn't help. A replay with so many stops by itself, if it is long enough. */
const FAILED_SHARE = 0.5;

/** What to tell if most of those that ended failed again; undefined if it isn't so. A refusal counts like a death. */
export function describeFailure({ outcomes, state }: ReplayView): string | undefined {
  if (outcomes === null) {
    return undefined;
  }
  const { delivered, refused, waiting } = outcomes;
  const dead = sum(outcomes.dead);
  const ended = delivered + refused + dead;
  if (ended === 0 || dead + refused < FAILED_SHARE * ended) {
    return undefined;
  }
  const others = state === "stopped" ? " The others stay dead." : "";
  if (ended === 1 && waiting <= 0) {
    return dead === 1
      ? "It is dead again: the cause isn't fixed."
      : "It was refused: the provider doesn't want it.";
  }
  const those = waiting > 0 ? ` of the ${ended} that ended` : ` of ${ended}`;
  const count = (some: number) => (some === ended && waiting <= 0 ? `All ${ended}` : `${some}${those}`);
  if (dead === 0) {
    return `${count(refused)} were refused: the provider doesn't want them.${others}`;
  }
  const also = refused > 0 ? `, and ${refused} ${refused === 1 ? "was" : "were"} refused` : "";
  return `${count(dead)} are dead again${also}: the cause isn't fixed.${others}`;
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

/** How many are dead again. */
export function countDeaths({ dead }: OutcomesView): number {
  return sum(dead);
}
