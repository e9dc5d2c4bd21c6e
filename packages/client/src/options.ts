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
  /** The limit of one attempt to acknowledge. Default: 10000. */
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

/** Throws RelayError `invalid_options`, which names the option and not its value. */
export function checkOptions(options: RelayOptions): CheckedOptions {
  const checked = {
    ...options,
    url: parseUrl(options.url),
    apiKey: demand(options.apiKey, "apiKey", /^[\x21-\x7e]+$/, "printable ASCII without blanks"),
    apiKeyHeader: options.apiKeyHeader ?? API_KEY_HEADER,
    timeoutMs: count(options.timeoutMs ?? 1500, "timeoutMs", 1, 30_000),
    outbox: options.outbox ?? memoryOutbox(),
    retry: {
      firstMs: count(options.retry?.firstMs ?? 1000, "retry.firstMs"),
      maxMs: count(options.retry?.maxMs ?? 60_000, "retry.maxMs"),
      giveUpAfterMs: count(options.retry?.giveUpAfterMs ?? 86_400_000, "retry.giveUpAfterMs"),
    },
    acknowledgeTimeoutMs: count(options.acknowledgeTimeoutMs ?? 10_000, "acknowledgeTimeoutMs"),
    concurrency: count(options.concurrency ?? 8, "concurrency"),
    pendingMax: count(options.pendingMax ?? 10_000, "pendingMax"),
    pendingCharsMax: count(options.pendingCharsMax ?? 32 * 1024 * 1024, "pendingCharsMax"),
    idleStreamMs: count(options.idleStreamMs ?? 600_000, "idleStreamMs"),
    verdictWaitSeconds: count(options.verdictWaitSeconds ?? 0, "verdictWaitSeconds", 0, 30),
    onEvent: options.onEvent ?? warnOfLosses,
    traceHeaders: options.traceHeaders ?? (() => ({})),
    waitUntil: options.waitUntil,
    // Some runtimes refuse a fetch that was taken off the global object.
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
  };
  return checked;
}

function parseUrl(url: string): string {
  const isUrl = /^https?:\/\/[^\s?#]+$/i.test(url);
  demand(isUrl ? "ok" : "", "url", /^ok$/, "an http:// or https:// address without query and fragment");
  return url.replace(/\/+$/, "");
}

function count(value: number, name: string, min = 1, max = Number.MAX_SAFE_INTEGER): number {
  const isCount = Number.isInteger(value) && value >= min && value <= max;
  demand(isCount ? "ok" : "", name, /^ok$/, `a whole number from ${min} to ${max}`);
  return value;
}

function demand(value: string, name: string, form: RegExp, wanted: string): string {
  if (typeof value !== "string" || !form.test(value)) {
    throw new RelayError("invalid_options", `${name} must be ${wanted}`);
  }
  return value;
}
