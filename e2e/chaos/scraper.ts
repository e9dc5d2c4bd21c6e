/**
 * Scrapes each replica every second, as a Prometheus does, and checks what the documents promise for every scrape: the
 * counters balance, and no counter ever decreases. A scrape without an answer is not checked. Nor is one without the
 * ledger's counts, which an app leaves out while it can't reach Redis.
 */
import { COUNTED_STATES } from "@adrelay/contract";
import { parseMetrics, pause, type Samples, sumOf } from "@adrelay/testkit";

/** Counters of the ledger. They must not decrease when a process ends. */
const LEDGER_COUNTER = /^adrelay_(acknowledgments_\w+_total|injections_recorded_total|turns_(opened_)?total)/;
const INTERVAL_MS = 1000;
const TIMEOUT_MS = 3000;
const BROKEN_MAX = 20;

export class Scraper {
  answered = 0;
  unanswered = 0;
  readonly broken: string[] = [];
  readonly #urls: ReadonlyMap<string, string>;
  readonly #running: Promise<void>;
  #isStopped = false;

  /** @param urls the ops listener of each replica */
  constructor(urls: ReadonlyMap<string, string>) {
    this.#urls = urls;
    this.#running = Promise.all([...urls.keys()].map((app) => this.#watch(app))).then(() => {});
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** Scrapes one replica. Resolves to undefined if the answer has no counts of the ledger. */
  async scrape(app: string): Promise<Samples | undefined> {
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

  async #watch(app: string): Promise<void> {
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

  #check(app: string, last: Samples, now: Samples): void {
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

/**
 * For each publisher, the counts of all states add up to the injections with an ad and the unknown acknowledgments, less
 * the turns that were abandoned. Turns that were opened are those that ended and those that are open.
 */
export function imbalancesOf(samples: Samples): readonly string[] {
  return publishersIn(samples).flatMap((publisher) => {
    const total = (name: string, labels = {}) => sumOf(samples, `adrelay_${name}`, { publisher, ...labels });
    const filled = total("injections_recorded_total", { outcome: "ok" });
    const unknown = total("acknowledgments_unknown_total");
    const abandoned = total("ad_responses_abandoned_total");
    const states = COUNTED_STATES.map((state) => total("acknowledgments", { state }));
    const sum = states.reduce((all, count) => all + count, 0);
    const [opened, ended, open] = [total("turns_opened_total"), total("turns_total"), total("turns_open")];
    return [
      ...(sum === filled + unknown - abandoned
        ? []
        : [
            `${publisher}: ${filled} filled, ${unknown} unknown, ${abandoned} abandoned, but the states add up to ${sum}`,
          ]),
      ...(opened === ended + open
        ? []
        : [`${publisher}: ${opened} turns were opened, but ${ended} ended and ${open} are open`]),
    ];
  });
}

const WITH_PUBLISHER = /^adrelay_acknowledgments\{.*publisher="([^"]+)"/;

function publishersIn(samples: Samples): readonly string[] {
  return [...new Set([...samples.keys()].flatMap((name) => WITH_PUBLISHER.exec(name)?.[1] ?? []))];
}
