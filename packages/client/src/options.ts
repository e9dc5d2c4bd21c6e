/** The options of a client, and their defaults. */
import { RelayError } from "./errors.ts";
import { type RelayEvent, warnOfLosses } from "./events.ts";
import { memoryOutbox, type Outbox } from "./outbox.ts";
import type { RetryOptions } from "./plan-send.ts";
import { API_KEY_HEADER } from "./wire.ts";

/** Keeps a serverless function alive until a promise settles, as platforms offer it. */
export type WaitUntil = (promise: Promise<unknown>) => void;

export interface RelayOptions {
  /** The relay's public address, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** The publisher's key. */
  readonly apiKey: string;
  /** Default: `X-Service-API-Key`. */
  readonly apiKeyHeader?: string;
  /** The limit of an injection, 1 to 30000: so long a chat can be delayed by it. Default: 1500. */
  readonly timeoutMs?: number;
  /** Keeps acknowledgments beside memory. Default: `memoryOutbox()`. For Node: `fileOutbox()` of `@adrelay/client/node`. */
  readonly outbox?: Outbox;
  /** Default: first wait 1 s, doubled up to 60 s; given up after 24 hours. */
  readonly retry?: Partial<RetryOptions>;
  /** The limit of one attempt to acknowledge, beside `verdictWaitSeconds`. Default: 10000. */
  readonly acknowledgeTimeoutMs?: number;
  /** How many acknowledgments are sent at a time. Default: 8. */
  readonly concurrency?: number;
  /** How many acknowledgments can be pending. Further ones are lost, and reported. Default: 10000. */
  readonly pendingMax?: number;
  /** How many characters the texts of the pending ones can have. Default: 32 Mi. */
  readonly pendingCharsMax?: number;
  /** After so long without a chunk, the consumer of a stream counts as gone. Default: 10 minutes. */
  readonly idleStreamMs?: number;
  /** How many seconds the relay waits for the service's verdict before it answers an acknowledgment, up to 30. Default: 0. */
  readonly verdictWaitSeconds?: number;
  /** Called with everything that happens. Default: losses and refusals are warned of on the console. */
  readonly onEvent?: (event: RelayEvent) => void;
  /** Headers of the current trace (`traceparent`, `tracestate`). Called at each injection and acknowledgment. */
  readonly traceHeaders?: () => Readonly<Record<string, string>>;
  /** On platforms where a function ends with its answer. Calls can have their own. */
  readonly waitUntil?: WaitUntil;
  /** Default: the global fetch. */
  readonly fetch?: typeof fetch;
}

/** All options, checked. */
export type CheckedOptions = Required<Omit<RelayOptions, "waitUntil" | "retry">> & {
  readonly retry: RetryOptions;
  readonly waitUntil: WaitUntil | undefined;
};

/** A whole number: its default, its smallest and its largest value. */
type Count = readonly [fallback: number, min?: number, max?: number];

const RETRY_COUNTS = { firstMs: [1000], maxMs: [60_000], giveUpAfterMs: [86_400_000] } as const;

const COUNTS = {
  timeoutMs: [1500, 1, 30_000],
  acknowledgeTimeoutMs: [10_000],
  concurrency: [8],
  pendingMax: [10_000],
  pendingCharsMax: [32 * 1024 * 1024],
  idleStreamMs: [600_000],
  verdictWaitSeconds: [0, 0, 30],
} as const;

/** Throws RelayError `invalid_options`, which names the option and not its value. */
export function checkOptions(options: RelayOptions): CheckedOptions {
  const { url, apiKey } = options;
  demand(/^https?:\/\/[^\s?#]+$/i.test(url), "url must be an http(s):// address without query and fragment");
  demand(
    typeof apiKey === "string" && /^[\x21-\x7e]+$/.test(apiKey),
    "apiKey must be printable ASCII without blanks",
  );
  return {
    apiKeyHeader: options.apiKeyHeader ?? API_KEY_HEADER,
    outbox: options.outbox ?? memoryOutbox(),
    onEvent: options.onEvent ?? warnOfLosses,
    traceHeaders: options.traceHeaders ?? (() => ({})),
    // Some runtimes refuse a fetch that was taken off the global object.
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    waitUntil: options.waitUntil,
    apiKey,
    url: url.replace(/\/+$/, ""),
    retry: checkCounts(options.retry ?? {}, RETRY_COUNTS, "retry."),
    ...checkCounts(options, COUNTS),
  };
}

function checkCounts<Name extends string>(
  given: { readonly [key in NoInfer<Name>]?: number },
  counts: Readonly<Record<Name, Count>>,
  path = "",
): Record<Name, number> {
  const checked: Partial<Record<Name, number>> = {};
  for (const name in counts) {
    const [fallback, min = 1, max = Infinity] = counts[name];
    const value = given[name] ?? fallback;
    const isCount = Number.isInteger(value) && value >= min && value <= max;
    demand(isCount, `${path}${name} must be a whole number from ${min} to ${max}`);
    checked[name] = value;
  }
  // The loop above has set each of them.
  return checked as Record<Name, number>;
}

function demand(isGood: boolean, message: string): void {
  if (!isGood) {
    throw new RelayError("invalid_options", message);
  }
}
