/**
 * Sends acknowledgments until the relay has accepted or refused them.
 *
 * 1. Every acknowledgment that hasn't ended is in `#pending`, which is bounded. The outbox has a second copy.
 * 2. It is stored before it is sent, and removed from the outbox only after its end. So a process that dies at any point
 *    leaves it to the next one.
 * 3. Its text never changes, and its id decides at the relay: sending it twice is harmless.
 * 4. A durable outbox also has the ads whose answers haven't ended. So a process that dies during an answer leaves its ad to the
 *    next one, which sends an empty text.
 * 5. While the relay fails, one acknowledgment at a time tries it, with growing pauses. One that fails by itself waits alone.
 */
import { overdue, RelayError } from "./errors.ts";
import type { RelayEvent } from "./events.ts";
import { type Connection, type RunningPost, startPost } from "./http.ts";
import { type Pending, startTimer, untilLimit, withResolver } from "./limits.ts";
import type { Outbox, StoredAcknowledgment } from "./outbox.ts";
import type { AcknowledgmentOutcome } from "./outcomes.ts";
import { type Attempt, backoffMs, classifyReply, type RetryOptions } from "./plan-send.ts";
import { ACKNOWLEDGE_PATH } from "./wire.ts";

export interface SenderOptions extends Connection {
  readonly outbox: Outbox;
  readonly retry: RetryOptions;
  /** The limit of one attempt, beside its wait for the verdict. */
  readonly acknowledgeTimeoutMs: number;
  readonly verdictWaitSeconds: number;
  readonly concurrency: number;
  readonly pendingMax: number;
  readonly pendingCharsMax: number;
}

/** An acknowledgment on its way. `first` and `ended` never reject. */
export interface Sending {
  /** Its outcome after the first attempt. */
  readonly first: Pending<AcknowledgmentOutcome>;
  /** Resolves at its end: it is accepted, refused or lost. */
  readonly ended: Pending<AcknowledgmentOutcome>;
}

interface Entry extends Sending, StoredAcknowledgment {
  /** Whether the outbox has it. */
  isStored: boolean;
  attempts: number;
  /** Infinite until it is stored, and while it is being sent. */
  dueAtMs: number;
}

const WAITING = { kind: "waiting" } as const;
/** When an acknowledgment is due that isn't stored yet, or is being sent. */
const NOT_YET = Infinity;

/** A slow outbox delays the sending by this at most. */
const OUTBOX_TIMEOUT_MS = 5000;
/** How often to look for what processes left that are gone. */
const LEFT_OVER_INTERVAL_MS = 10_000;

export class Sender {
  readonly #options: SenderOptions;
  readonly #report: (event: RelayEvent) => void;
  /** How long the relay may wait for the verdict. */
  #waitSeconds: number;
  /** By ad_response_id, in the order in which they came. */
  readonly #pending = new Map<string, Entry>();
  /** The ads whose answers haven't ended. */
  readonly #open = new Map<string, Pending<void>>();
  #pendingChars = 0;
  #sending = 0;
  #failuresInRow = 0;
  #resumeAtMs = 0;
  #isClosing = false;
  #isClosed = false;
  readonly #posts = new Set<RunningPost>();
  #stopTimer = () => {};
  #stopLookingForLeftOver = () => {};
  /** Resolves when none is pending any more. */
  #empty = withResolver<void>();

  constructor(options: SenderOptions, report: (event: RelayEvent) => void) {
    this.#options = options;
    this.#report = report;
    this.#waitSeconds = options.verdictWaitSeconds;
    if (options.outbox.isDurable) {
      void this.#takeLeftOver();
    }
  }

  get pendingCount(): number {
    return this.#pending.size;
  }

  get attemptTimeoutMs(): number {
    return this.#options.acknowledgeTimeoutMs + this.#waitSeconds * 1000;
  }

  /** Stores an ad whose answer is about to begin, if that can outlive the process. A program that forgets ads must not pile them up. */
  async open(adResponseId: string): Promise<void> {
    const { outbox, pendingMax } = this.#options;
    if (this.#open.size >= pendingMax) {
      return;
    }
    this.#open.set(adResponseId, withResolver());
    if (outbox.isDurable) {
      const acknowledgment = { adResponseId, text: "", storedAtMs: Date.now(), isOpen: true } as const;
      await this.#guardOutbox(() => outbox.add(acknowledgment));
    }
  }

  /** Takes an acknowledgment on. While one with the same id is pending, that one stays: the first text wins. */
  add(acknowledgment: StoredAcknowledgment): Sending {
    this.#open.get(acknowledgment.adResponseId)?.resolve();
    this.#open.delete(acknowledgment.adResponseId);
    const chars = acknowledgment.text.length;
    const { pendingMax, pendingCharsMax } = this.#options;
    const same = this.#pending.get(acknowledgment.adResponseId);
    if (same !== undefined) {
      return same;
    }
    if (this.#isClosed) {
      return this.#lose(acknowledgment, new RelayError("closed", "the client is closed"));
    }
    if (this.#pending.size >= pendingMax || this.#pendingChars + chars > pendingCharsMax) {
      const message = `${this.#pending.size} acknowledgments wait already`;
      void this.#guardOutbox(() => this.#options.outbox.remove(acknowledgment.adResponseId));
      return this.#lose(acknowledgment, new RelayError("outbox_full", message));
    }
    return this.#hold(acknowledgment, false);
  }

  /** Tries all now, whatever their waits, until none is pending or the time is up. Resolves to how many are left. */
  async flush(timeoutMs: number): Promise<number> {
    if (this.#pending.size > 0) {
      this.#resumeAtMs = 0;
      this.#failuresInRow = 0;
      for (const entry of this.#pending.values()) {
        if (entry.dueAtMs < NOT_YET) {
          entry.dueAtMs = 0;
        }
      }
      this.#sendDue();
      await untilLimit(this.#empty.promise, timeoutMs);
    }
    return this.#pending.size;
  }

  /** Resolves once each ad is acknowledged that is open now. */
  untilNoneIsOpen(): Promise<unknown> {
    return Promise.all([...this.#open.values()].map(({ promise }) => promise));
  }

  /**
   * Flushes, then lets go: a durable outbox keeps what is left for another process, otherwise it is lost. Of an answer that hasn't
   * ended nobody knows the text, so its ad is acknowledged with an empty one.
   */
  async close(timeoutMs: number): Promise<number> {
    this.#isClosing = true;
    this.#stopLookingForLeftOver();
    for (const adResponseId of this.#open.keys()) {
      this.add({ adResponseId, text: "", storedAtMs: Date.now() });
    }
    if (this.#waitSeconds > 0) {
      this.#waitSeconds = 0;
      this.#abortAll();
    }
    await this.flush(timeoutMs);
    this.#isClosed = true;
    const { outbox } = this.#options;
    // First, because it also ends what is still being stored.
    await this.#guardOutbox(() => outbox.close());
    this.#stopTimer();
    this.#abortAll();
    const left = this.#pending.size;
    for (const [id, entry] of this.#pending) {
      if (outbox.isDurable && entry.isStored) {
        entry.first.resolve(WAITING);
        entry.ended.resolve(WAITING);
      } else {
        const error = new RelayError("closed", "the client is closed");
        this.#end(id, entry, { kind: "lost", error });
      }
    }
    this.#pending.clear();
    return left;
  }

  #abortAll(): void {
    for (const post of this.#posts) {
      post.abort();
    }
  }

  #hold(acknowledgment: StoredAcknowledgment, isStored: boolean): Sending {
    const entry: Entry = {
      ...acknowledgment,
      first: withResolver(),
      ended: withResolver(),
      isStored,
      attempts: 0,
      dueAtMs: isStored ? 0 : NOT_YET,
    };
    this.#pending.set(acknowledgment.adResponseId, entry);
    this.#pendingChars += acknowledgment.text.length;
    if (isStored) {
      this.#sendDue();
    } else {
      void this.#guardOutbox(() => this.#options.outbox.add(acknowledgment)).then((done) => {
        entry.isStored = done === true;
        entry.dueAtMs = 0;
        if (this.#failuresInRow > 0) {
          entry.first.resolve(WAITING);
        }
        this.#sendDue();
      });
    }
    return entry;
  }

  /** Sends what is due, as many at a time as the relay takes well, and sets the timer for the next one. */
  #sendDue(): void {
    this.#stopTimer();
    const nowMs = performance.now();
    const limit = this.#failuresInRow > 0 ? 1 : this.#options.concurrency;
    let nextMs = NOT_YET;
    for (const [id, entry] of this.#pending) {
      if (this.#sending >= limit) {
        return;
      }
      const dueAtMs = Math.max(entry.dueAtMs, this.#resumeAtMs);
      if (dueAtMs <= nowMs) {
        void this.#send(id, entry);
      } else {
        nextMs = Math.min(nextMs, dueAtMs);
      }
    }
    if (nextMs < NOT_YET) {
      // What only memory has keeps the process alive until it is sent.
      const isDurable =
        this.#options.outbox.isDurable && [...this.#pending.values()].every(({ isStored }) => isStored);
      this.#stopTimer = startTimer(nextMs - nowMs, () => this.#sendDue(), isDurable);
    }
  }

  async #send(id: string, entry: Entry): Promise<void> {
    entry.dueAtMs = NOT_YET;
    this.#sending += 1;
    entry.attempts += 1;
    const failuresBefore = this.#failuresInRow;
    const attempt = await this.#attempt(entry);
    this.#sending -= 1;
    if (this.#pending.get(id) !== entry) {
      return;
    }
    if (attempt.kind === "retry") {
      if (attempt.about === "relay") {
        this.#pause(failuresBefore + 1, attempt.afterMs);
      }
      this.#postpone(id, entry, attempt);
    } else {
      this.#failuresInRow = 0;
      this.#resumeAtMs = 0;
      this.#end(id, entry, attempt);
    }
    this.#sendDue();
  }

  async #attempt(entry: Entry): Promise<Attempt> {
    const { adResponseId, text, traceHeaders } = entry;
    const { attemptTimeoutMs } = this;
    const seconds = this.#waitSeconds;
    const body = JSON.stringify({ ad_response_id: adResponseId, llm_response: text });
    const post = startPost(this.#options, {
      path: ACKNOWLEDGE_PATH,
      body,
      headers: { ...traceHeaders, Prefer: seconds > 0 ? `wait=${seconds}` : "respond-async" },
    });
    this.#posts.add(post);
    const reply = await untilLimit(post.reply, attemptTimeoutMs);
    this.#posts.delete(post);
    if (typeof reply === "symbol") {
      post.abort();
      return classifyReply({ kind: "failed", error: overdue("relay", attemptTimeoutMs) }, 0);
    }
    if (reply.kind === "failed" && seconds > this.#waitSeconds) {
      // The client closes, and no longer waits for verdicts.
      return this.#attempt(entry);
    }
    return classifyReply(reply, Date.now());
  }

  /** Keeps all from the relay for a while. Attempts that were under way together count as one failure. */
  #pause(failuresInRow: number, afterMs: number): void {
    const pauseMs = Math.max(afterMs, backoffMs(failuresInRow, this.#options.retry, Math.random));
    this.#failuresInRow = Math.max(this.#failuresInRow, failuresInRow);
    this.#resumeAtMs = Math.max(this.#resumeAtMs, performance.now() + pauseMs);
    if (failuresInRow === 1) {
      for (const { first } of this.#pending.values()) {
        first.resolve(WAITING);
      }
    }
  }

  #postpone(id: string, entry: Entry, { error, afterMs }: Extract<Attempt, { kind: "retry" }>): void {
    const { retry } = this.#options;
    const { storedAtMs, attempts } = entry;
    if (Date.now() - storedAtMs >= retry.giveUpAfterMs) {
      const message = `not accepted in ${retry.giveUpAfterMs} ms: ${error.message}`;
      this.#end(id, entry, { kind: "lost", error: new RelayError("gave_up", message, { cause: error }) });
      return;
    }
    const nowMs = performance.now();
    entry.dueAtMs = nowMs + Math.max(afterMs, backoffMs(attempts, retry, Math.random));
    const delayMs = Math.max(entry.dueAtMs, this.#resumeAtMs) - nowMs;
    this.#report({ kind: "retrying", adResponseId: id, attempts, delayMs, error });
    entry.first.resolve(WAITING);
  }

  #end(id: string, entry: Entry, outcome: Exclude<AcknowledgmentOutcome, { kind: "waiting" }>): void {
    const { outbox } = this.#options;
    this.#pending.delete(id);
    this.#pendingChars -= entry.text.length;
    void this.#guardOutbox(() => outbox.remove(id));
    if (outcome.kind === "accepted") {
      const durationMs = Date.now() - entry.storedAtMs;
      const { kind, status } = outcome;
      this.#report({ kind, adResponseId: id, status, attempts: entry.attempts, durationMs });
    } else {
      this.#report({ kind: outcome.kind, adResponseId: id, error: outcome.error });
    }
    entry.first.resolve(outcome);
    entry.ended.resolve(outcome);
    if (this.#pending.size === 0) {
      this.#empty.resolve();
      this.#empty = withResolver();
    }
  }

  #lose({ adResponseId }: StoredAcknowledgment, error: RelayError): Sending {
    this.#report({ kind: "lost", adResponseId, error });
    const outcome = withResolver<AcknowledgmentOutcome>();
    outcome.resolve({ kind: "lost", error });
    return { first: outcome, ended: outcome };
  }

  /** Takes over one log after the other while there is room, and looks again from time to time. */
  async #takeLeftOver(): Promise<void> {
    const { outbox } = this.#options;
    let found = 1;
    while (found > 0 && this.#pending.size < this.#options.pendingMax / 2) {
      // However long it takes: what it takes over is this process' own, and nobody else sends it.
      const left = (await this.#reportFailure(() => outbox.takeLeftOver())) ?? [];
      if (this.#isClosing) {
        return;
      }
      found = left.length;
      for (const acknowledgment of left) {
        const { adResponseId } = acknowledgment;
        if (!this.#pending.has(adResponseId) && !this.#open.has(adResponseId)) {
          this.#hold(acknowledgment, true);
        }
      }
      if (found > 0) {
        this.#report({ kind: "left_over", count: found });
      }
    }
    const look = () => void this.#takeLeftOver();
    this.#stopLookingForLeftOver = startTimer(LEFT_OVER_INTERVAL_MS, look, true);
  }

  /** Waits for the outbox within its limit: true, or undefined if it failed. */
  #guardOutbox(work: () => Promise<void>): Promise<boolean | undefined> {
    return this.#reportFailure(async () => {
      if (typeof (await untilLimit(work(), OUTBOX_TIMEOUT_MS)) === "symbol") {
        throw overdue("outbox", OUTBOX_TIMEOUT_MS);
      }
      return true;
    });
  }

  /** A failure of the outbox is reported, and the client goes on without it: undefined. */
  async #reportFailure<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (cause) {
      const error = new RelayError("outbox_failed", String(cause), { cause });
      this.#report({ kind: "outbox_failed", error });
      return undefined;
    }
  }
}
