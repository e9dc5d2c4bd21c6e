/** Compares the counters in the metrics with the entries, for each publisher and on every replica. */
import { COUNTED_STATES } from "@adrelay/contract";
import { acknowledgedOf, type LedgerEntry } from "@adrelay/store";
import { type Samples, sumOf } from "@adrelay/testkit";
import type { AdEvidence, Evidence } from "../evidence.ts";
import { ACCOUNTS, type Account } from "../fault.ts";
import { imbalancesOf } from "../scraper.ts";
import { type Check, checkSums } from "./check.ts";

type Sum = readonly [what: string, left: number, right: number];

export function checkCounters({ ads, metrics }: Evidence): readonly Check[] {
  const [samples = new Map<string, number>()] = metrics.values();
  return [
    checkSums(
      "states in metrics are the sums of all look-ups",
      ACCOUNTS.flatMap((account) => stateSums(samples, account, ads)),
    ),
    checkSums(
      "counters agree with the entries",
      ACCOUNTS.flatMap((account) => counterSums(samples, account, ads)),
    ),
    { name: "the counters balance in the end", checked: ACCOUNTS.length, broken: imbalancesOf(samples) },
    checkReplicas(metrics),
    checkSums("the queue holds only dead letters", queueSums(samples)),
  ];
}

const countOf = (account: Account, ads: readonly AdEvidence[], has: (entry: LedgerEntry) => boolean) =>
  ads.filter((ad) => ad.account === account && ad.entry !== undefined && has(ad.entry)).length;

function stateSums(samples: Samples, publisher: Account, ads: readonly AdEvidence[]): readonly Sum[] {
  return COUNTED_STATES.map((state) => [
    `${publisher} ${state}`,
    sumOf(samples, "adrelay_acknowledgments", { publisher, state }),
    ads.filter(({ account, view }) => account === publisher && view?.state === state).length,
  ]);
}

function counterSums(samples: Samples, publisher: Account, ads: readonly AdEvidence[]): readonly Sum[] {
  const total = (name: string) => sumOf(samples, `adrelay_acknowledgments_${name}_total`, { publisher });
  const filled = sumOf(samples, "adrelay_injections_recorded_total", { publisher, outcome: "ok" });
  const count = (has: (entry: LedgerEntry) => boolean) => countOf(publisher, ads, has);
  const inState = (state: LedgerEntry["state"]) => count((entry) => entry.state === state);
  const isAccepted = (entry: LedgerEntry) => acknowledgedOf(entry) !== undefined;
  const isLate = (entry: LedgerEntry) => acknowledgedOf(entry)?.isLate ?? false;
  return [
    // Only ads that reached their caller have a deadline.
    [`${publisher} filled`, filled, count((entry) => entry.injection?.deadlineAtMs !== undefined)],
    [`${publisher} accepted`, total("accepted"), count(isAccepted)],
    [
      `${publisher} unknown`,
      total("unknown"),
      count((entry) => isAccepted(entry) && entry.injection === undefined),
    ],
    [`${publisher} late`, total("late"), count(isLate)],
    // A late acknowledgment was missed before, and stays counted as missed.
    [`${publisher} missed`, total("missed"), inState("missed") + count(isLate)],
    [`${publisher} delivered`, total("delivered"), inState("delivered")],
    [`${publisher} refused`, total("refused"), inState("refused")],
  ];
}

const SHARED = /^(adrelay_acknowledgments|adrelay_injections_recorded_total|adrelay_queue_jobs)/;

/** Metrics that come from the ledger are the same on every replica. */
function checkReplicas(metrics: Evidence["metrics"]): Check {
  const pages = [...metrics].map(([app, samples]) => {
    const lines = [...samples]
      .filter(([name]) => SHARED.test(name))
      .map(([name, value]) => `${name} ${value}`);
    return { app, text: lines.sort().join("\n") };
  });
  const [first] = pages;
  const others = pages.filter(({ text }) => text !== first?.text);
  return {
    name: "all replicas show the same counts",
    checked: pages.length,
    broken: others.map(({ app, text }) => {
      const known = new Set(first?.text.split("\n"));
      const different = text.split("\n").filter((line) => !known.has(line));
      return `${app} shows other counts than ${first?.app}: ${different.join(", ")}`;
    }),
  };
}

function queueSums(samples: Samples): readonly Sum[] {
  const jobs = (state: string) => sumOf(samples, "adrelay_queue_jobs", { state });
  const dead = sumOf(samples, "adrelay_acknowledgments", { state: "dead" });
  return [
    ["waiting", jobs("waiting"), 0],
    ["active", jobs("active"), 0],
    ["delayed", jobs("delayed"), 0],
    ["payloads of dead letters", jobs("failed"), dead],
  ];
}
