/** The client: wires asking for ads, watching answers and sending acknowledgments together. */

import { ASYNC_DISPOSE } from "./dispose.ts";
import { makeReport, type RelayEvent } from "./events.ts";
import { type Inject, makeInject } from "./inject.ts";
import { type Injected, type Injection, makeInjected, notInjected } from "./injection.ts";
import { untilLimit } from "./limits.ts";
import { type CheckedOptions, checkOptions, type RelayOptions, type WaitUntil } from "./options.ts";
import type { AcknowledgmentOutcome } from "./outcomes.ts";
import { Sender } from "./sender.ts";
import { ShownText, type TextOf } from "./shown-text.ts";
import { tryCall } from "./try-call.ts";
import {
  type AnswerWatcher,
  type ChunkOf,
  endOnAbort,
  isAsyncIterable,
  isReadableStream,
  NO_WATCHER,
  type Watched,
  watchIterable,
  watchReadable,
} from "./watch-answer.ts";
import type { InjectionRequest } from "./wire.ts";

export interface InjectOptions {
  /**
   * Ends the wait for an ad. In `withAd` it also ends the stream, with or without an ad: what was shown until then is
   * acknowledged, and the consumer sees the end.
   */
  readonly signal?: AbortSignal | undefined;
  /** Instead of the client's own. */
  readonly timeoutMs?: number | undefined;
  /** Instead of the client's own: some platforms have one for each request. */
  readonly waitUntil?: WaitUntil | undefined;
}

export interface WithAdOptions<Chunk> extends InjectOptions {
  /** The text of a chunk. Chunks that are texts need none. */
  readonly textOf: TextOf<Chunk>;
}

/** Of `withAd`, for chunks of any type: its overloads hold `textOf` to the type of the chunks. */
type AnyAdOptions = InjectOptions & { readonly textOf?: TextOf<never> };

export interface WatchOptions {
  /** Settles when it fires. */
  readonly signal?: AbortSignal | undefined;
  /** Instead of the client's own `idleStreamMs`. */
  readonly idleMs?: number | undefined;
  /** Instead of the client's own. */
  readonly waitUntil?: WaitUntil | undefined;
}

/** Calls the model with the prompt. The injection tells more, if that is needed. */
export type AnswerCall<Answer> = (prompt: string, injection: Injection) => Answer | PromiseLike<Answer>;

/** An answer whose chunks are texts. */
export type TextAnswer = string | AsyncIterable<string> | ReadableStream<string>;

export interface FlushOptions {
  /** Default: 10000. */
  readonly timeoutMs?: number;
}

const FLUSH_TIMEOUT_MS = 10_000;
/** What `close` keeps of its time for sending. */
const FLUSH_MIN_MS = 2000;
/** Platforms let a function live for about 30 s after its answer. */
const WAIT_UNTIL_MS = 25_000;

/** A client of one relay. Make one for a process, or for a request where nothing outlives it. */
export class Relay implements AsyncDisposable {
  readonly #options: CheckedOptions;
  readonly #report: (event: RelayEvent) => void;
  readonly #inject: Inject;
  readonly #sender: Sender;
  /** The answers that still run. */
  readonly #open = new Set<ShownText<never>>();
  /** The injections under way. */
  readonly #injecting = new Set<Promise<unknown>>();
  #closing: Promise<number> | undefined;

  constructor(options: RelayOptions) {
    this.#options = checkOptions(options);
    this.#report = makeReport(this.#options.onEvent);
    this.#inject = makeInject(this.#options, ({ adResponseId }) => {
      void this.#acknowledge(adResponseId, "", this.#options.waitUntil);
    });
    this.#sender = new Sender(this.#options, this.#report);
  }

  /** How many acknowledgments the relay doesn't have yet. */
  get pendingCount(): number {
    return this.#sender.pendingCount;
  }

  /** Asks for an ad. Never rejects, and takes no longer than its limit: without an ad it gives back the prompt. */
  async inject(request: InjectionRequest, options: InjectOptions = {}): Promise<Injection> {
    if (this.#closing) {
      return notInjected(request.prompt, { reason: "closed" });
    }
    const { timeoutMs = this.#options.timeoutMs, signal, waitUntil = this.#options.waitUntil } = options;
    const startedAtMs = performance.now();
    const injecting = this.#inject({ request, timeoutMs, signal, traceHeaders: this.#traceHeaders() });
    this.#injecting.add(injecting);
    const outcome = await injecting;
    this.#injecting.delete(injecting);
    const durationMs = performance.now() - startedAtMs;
    if (!outcome.ad) {
      const { reason, error } = outcome;
      this.#report({ kind: "not_injected", reason, durationMs, error });
      return notInjected(request.prompt, outcome);
    }
    const { adResponseId } = outcome.ad;
    this.#report({ kind: "injected", adResponseId, durationMs });
    await untilLimit(this.#sender.open(adResponseId), timeoutMs - durationMs);
    const injected = makeInjected(outcome.ad, (text) => this.#acknowledge(adResponseId, text, waitUntil));
    if (this.#closing) {
      void injected.acknowledge("");
      // As any injection from now on.
      return this.inject(request);
    }
    return injected;
  }

  /**
   * Asks for an ad, calls the model with the prompt, and passes the answer through unchanged. What was handed over is
   * acknowledged: at the end, on an error or an abort, and if the consumer leaves early. Rejects only with the model's error.
   */
  withAd<Answer extends TextAnswer>(
    request: InjectionRequest,
    answer: AnswerCall<Answer>,
    options?: InjectOptions,
  ): Promise<Watched<Answer>>;
  withAd<Answer>(
    request: InjectionRequest,
    answer: AnswerCall<Answer>,
    options: WithAdOptions<ChunkOf<Answer>>,
  ): Promise<Watched<Answer>>;
  async withAd(
    request: InjectionRequest,
    answer: AnswerCall<unknown>,
    options: AnyAdOptions = {},
  ): Promise<unknown> {
    const injection = await this.inject(request, options);
    let value: unknown;
    try {
      value = await answer(injection.prompt, injection);
    } catch (error) {
      this.#watcherOf(injection, options).settle();
      throw error;
    }
    if (isReadableStream(value)) {
      return injection.kind === "none" && !options.signal
        ? value
        : watchReadable(value, this.#watcherOf(injection, options), endOnAbort(options.signal));
    }
    if (isAsyncIterable(value)) {
      return watchIterable(value, this.#watcherOf(injection, options), endOnAbort(options.signal));
    }
    const shown = this.#watcherOf(injection, { ...options, signal: undefined });
    shown.add(value);
    shown.settle();
    return value;
  }

  /**
   * For answers that `withAd` can't wrap, such as those in several calls. Add each text as the user is shown it, and settle at
   * the end. It settles itself after a long time without a text, and when the client closes.
   */
  watch(injected: Injected, options: WatchOptions = {}): ShownText<string> {
    return this.#watch<string>(injected, asItIs, options);
  }

  /** Sends what is pending now, and waits for it. Resolves to how many the relay doesn't have at the end. */
  flush({ timeoutMs = FLUSH_TIMEOUT_MS }: FlushOptions = {}): Promise<number> {
    return this.#sender.flush(timeoutMs);
  }

  /**
   * Waits for answers that still run, flushes, then stops. From now on there are no ads. An answer that takes too long is
   * acknowledged as far as it was shown. What is left stays in a durable outbox; otherwise it is lost, and reported.
   */
  close({ timeoutMs = FLUSH_TIMEOUT_MS }: FlushOptions = {}): Promise<number> {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  async #close(timeoutMs: number): Promise<number> {
    const endMs = performance.now() + timeoutMs;
    for (const shown of this.#open) {
      if (!shown.isAsked) {
        shown.settle();
      }
    }
    const answers = Promise.all(this.#injecting).then(() => this.#sender.untilNoneIsOpen());
    await untilLimit(answers, timeoutMs - Math.min(timeoutMs / 2, FLUSH_MIN_MS));
    for (const shown of this.#open) {
      shown.settle();
    }
    return this.#sender.close(endMs - performance.now());
  }

  async [ASYNC_DISPOSE](): Promise<void> {
    await this.close();
  }

  async #acknowledge(
    adResponseId: string,
    text: string,
    waitUntil: WaitUntil | undefined,
  ): Promise<AcknowledgmentOutcome> {
    const { first, ended } = this.#sender.add({
      adResponseId,
      text,
      storedAtMs: Date.now(),
      traceHeaders: this.#traceHeaders(),
    });
    keepAlive(waitUntil, untilLimit(ended.promise, WAIT_UNTIL_MS));
    const outcome = await untilLimit(first.promise, this.#sender.attemptTimeoutMs);
    return typeof outcome === "symbol" ? { kind: "waiting" } : outcome;
  }

  #watcherOf(injection: Injection, options: AnyAdOptions): AnswerWatcher<unknown> {
    // The overloads of withAd demand textOf unless the chunks are texts, and chunks of its own type.
    const textOf = (options.textOf ?? asItIs) as TextOf<unknown>;
    return injection.kind === "none" ? NO_WATCHER : this.#watch(injection, textOf, options);
  }

  #watch<Chunk>(injected: Injected, textOf: TextOf<Chunk>, options: WatchOptions): ShownText<Chunk> {
    const { signal, idleMs = this.#options.idleStreamMs, waitUntil = this.#options.waitUntil } = options;
    const shown = new ShownText({ injected, textOf, signal, idleMs, report: this.#report });
    this.#open.add(shown);
    void shown.settled.then(() => this.#open.delete(shown));
    keepAlive(waitUntil, shown.settled);
    return shown;
  }

  #traceHeaders(): Readonly<Record<string, string>> {
    return tryCall(this.#options.traceHeaders) ?? {};
  }
}

/** Makes a client. Throws only if an option is wrong. */
export function createRelay(options: RelayOptions): Relay {
  return new Relay(options);
}

/** What turns out to be no text is reported. */
const asItIs = (text: string) => text;

function keepAlive(waitUntil: WaitUntil | undefined, promise: Promise<unknown>): void {
  // Outside of a request a platform may refuse it. The acknowledgment is sent as well as may be.
  tryCall(() => waitUntil?.(promise));
}
