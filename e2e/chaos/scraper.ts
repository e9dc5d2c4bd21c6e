/**
 * Scrapes each replica every second, as a Prometheus does, and checks what the documents promise for every scrape: the
 * counters balance, and no counter ever decreases. A scrape without an answer is not checked. Nor is one without the
 * ledger's counts, which an app leaves out while it can't reach Redis.
 */
import { COUNTED_STATES } from "@adrelay/contract";
import { parseMetrics, pause, type Samples, sumOf } from "@adrelay/testkit";
import type { AppId } from "./fault.ts";

/** Counters of the ledger. They must not decrease when a process ends. */
const LEDGER_COUNTER = /^(adrelay_acknowledgments_\w+_total|adrelay_injections_recorded_total)/;
const INTERVAL_MS = 1000;
const TIMEOUT_MS = 3000;
const BROKEN_MAX = 20;

export class Scraper {
  answered = 0;
  unanswered = 0;
  readonly broken: string[] = [];
  readonly #urls: ReadonlyMap<AppId, string>;
  readonly #running: Promise<void>;
  #isStopped = false;

  constructor(urls: ReadonlyMap<AppId, string>) {
    this.#urls = urls;
    this.#running = Promise.all([...urls.keys()].map((app) => this.#watch(app))).then(() => {});
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** Scrapes one replica. Resolves to undefined if the answer has no counts of the ledger. */
  async scrape(app: AppId): Promise<Samples | undefined> {
    try {
      const response = await fetch(`${this.#urls.get(app)}/metrics`, {
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const samples = parseMetrics(await response.text());
      return samples.has("adrelay_acknowledgments_overdue") ? samples : undefined;
    } catch {
      return undefined;
    }
  }

  async #watch(app: AppId): Promise<void> {
    let last: Samples = new Map();
    while (!this.#isStopped) {
      const samples = await this.scrape(app);
      if (samples === undefined) {
        this.unanswered += 1;
      } else {
        this.answered += 1;
        this.#check(app, last, samples);
        last = samples;
      }
      await pause(INTERVAL_MS);
    }
  }

  #check(app: AppId, last: Samples, now: Samples): void {
    const broken = [
      ...imbalancesOf(now),
      ...[...last].flatMap(([name, before]) =>
        LEDGER_COUNTER.test(name) && (now.get(name) ?? 0) < before
          ? [`${name} went from ${before} to ${now.get(name) ?? "nothing"}`]
          : [],
      ),
    ];
    this.broken.push(
      ...broken.map((what) => `${app} at ${new Date().toISOString()}: ${what}`).slice(0, BROKEN_MAX),
    );
  }
}

/** For each publisher, the counts of all states add up to the injections with an ad and the unknown acknowledgments. */
export function imbalancesOf(samples: Samples): readonly string[] {
  return ["acme", "globe"].flatMap((publisher) => {
    const filled = sumOf(samples, "adrelay_injections_recorded_total", { publisher, outcome: "ok" });
    const unknown = sumOf(samples, "adrelay_acknowledgments_unknown_total", { publisher });
    const states = COUNTED_STATES.map((state) =>
      sumOf(samples, "adrelay_acknowledgments", { publisher, state }),
    );
    const sum = states.reduce((total, count) => total + count, 0);
    return sum === filled + unknown
      ? []
      : [`${publisher}: ${filled} filled and ${unknown} unknown, but the states add up to ${sum}`];
  });
}
