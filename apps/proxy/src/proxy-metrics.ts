/** This process' own metrics of the proxy's calls. */
import { FALLBACK_REASONS, OTHER_LABEL } from "@adrelay/core";
import type { PublisherSeries } from "@adrelay/relay-kit";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { AdOutcome, AdState } from "./http/call.ts";

/** Parts of the time to an answer's first byte. */
const FIRST_BYTE_PARTS = ["ad", "model"] as const;
type FirstBytePart = (typeof FIRST_BYTE_PARTS)[number];

/** Why an ad wasn't put in, by what the answer says of it. Anything else counts as `other`. */
export const AD_REASONS: Readonly<Record<AdState, readonly string[]>> = {
  injected: [""],
  no_fill: [""],
  rejected: [""],
  fallback: [
    ...FALLBACK_REASONS,
    "store_unavailable",
    "not_booked",
    "request_refused",
    "caller_gone",
    "model_refused",
    "message_changed",
    "internal_error",
    OTHER_LABEL,
  ],
  skipped: [
    "off",
    "unknown_value",
    "no_context",
    "not_json",
    "no_user_text",
    "prefill",
    "structured_output",
    "forced_tool",
    "choices",
    "audio",
    "background",
    "provider_state",
    "cache_marked",
    "stored_response",
    "too_large",
    "unknown_step",
    "turn_ended",
    "overloaded",
    OTHER_LABEL,
  ],
};
const OUTCOMES = Object.entries(AD_REASONS).flatMap(([outcome, reasons]) =>
  reasons.map((reason) => ({ outcome, reason })),
);

/** From a fast model nearby up to one that thinks for minutes. */
const FIRST_BYTE_BUCKETS_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2, 5, 10, 30, 60, 180, 600,
];

/** Whether a call has a valid key of a publisher. */
const KEY_RESULTS = ["accepted", "refused"] as const;

export interface ProxyMetricsOptions {
  readonly series: PublisherSeries;
  /** How many answers stream now. */
  countStreams(): number;
}

export class ProxyMetrics {
  readonly #series: PublisherSeries;
  readonly #ads: Counter<"publisher" | "outcome" | "reason">;
  readonly #firstByte: Histogram<"part">;
  readonly #copyFaults: Counter;
  readonly #keys: Counter<"result">;

  constructor(registry: Registry, { series, countStreams }: ProxyMetricsOptions) {
    this.#series = series;
    this.#ads = new Counter({
      name: "adrelay_turn_ads_total",
      help: "Calls of the proxy's surfaces that this process answered, by outcome and reason, as in X-Adrelay-Ad: injected, no_fill, rejected, fallback, skipped.",
      labelNames: ["publisher", "outcome", "reason"],
      registers: [registry],
    });
    series.addCounter(this.#ads, OUTCOMES);
    this.#firstByte = new Histogram({
      name: "adrelay_proxy_first_byte_seconds",
      help: "Time to the first byte of an answer, of calls that can have an ad, by part: ad (from the request's last byte until the request goes upstream), model (from then on).",
      labelNames: ["part"],
      buckets: FIRST_BYTE_BUCKETS_SECONDS,
      registers: [registry],
    });
    for (const part of FIRST_BYTE_PARTS) {
      this.#firstByte.zero({ part });
    }
    this.#copyFaults = new Counter({
      name: "adrelay_copy_faults_total",
      help: "Answers that passed through, but that could not be read to their end. Their turns were settled with what was read.",
      registers: [registry],
    });
    this.#keys = new Counter({
      name: "adrelay_proxy_keys_total",
      help: "Calls of this process, by what became of their key: accepted, refused (it got 401).",
      labelNames: ["result"],
      registers: [registry],
    });
    for (const result of KEY_RESULTS) {
      this.#keys.inc({ result }, 0);
    }
    new Gauge({
      name: "adrelay_streams_open",
      help: "Answers that stream through this process now.",
      registers: [registry],
      collect() {
        this.set(countStreams());
      },
    });
  }

  /** Counts what became of the ad of a call. */
  countAd(publisher: string, { state, reason = "" }: AdOutcome): void {
    const known = AD_REASONS[state].includes(reason) ? reason : OTHER_LABEL;
    this.#ads.inc({ publisher: this.#series.labelOf(publisher), outcome: state, reason: known });
  }

  observeFirstByte(part: FirstBytePart, durationMs: number): void {
    this.#firstByte.observe({ part }, durationMs / 1000);
  }

  countKey(isValid: boolean): void {
    this.#keys.inc({ result: isValid ? "accepted" : "refused" });
  }

  countCopyFault(): void {
    this.#copyFaults.inc();
  }
}
