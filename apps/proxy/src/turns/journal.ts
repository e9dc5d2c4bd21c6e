/**
 * The journal of this process: writes the texts of all its steps to Redis, keeps their leases, and brings their ends through.
 *
 * 1. Texts are appended every 250 ms, or once a step has 4 KB, for many steps in one call. One call is under way at a time.
 * 2. While Redis is away, texts stay in memory up to a bound, and ends are tried again until Redis is back.
 * 3. A turn that is over before the first append costs Redis its opening and its end only.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { AdResponseId } from "@adrelay/contract";
import { planRetry } from "@adrelay/core";
import { OnceASecond } from "@adrelay/relay-kit";
import { onAbort } from "@adrelay/service-kit";
import type { FindAd, StepWrite, Turns, WriteAnswer } from "@adrelay/store";
import type { Logger } from "pino";
import { JournalRoom } from "./journal-room.ts";
import { APPEND_INTERVAL_MS, JournaledStep, type NewStep, type StepHost } from "./journaled-step.ts";
import { TextGate } from "./text-gate.ts";
import type { TurnMetrics } from "./turn-metrics.ts";

export interface JournalDeps {
  readonly turns: Turns;
  readonly findAd: FindAd;
  readonly metrics: TurnMetrics;
  readonly log: Logger;
  readonly random: () => number;
  /** Most bytes of texts and prompts in memory. */
  readonly maxBytes: number;
  /** Most bytes of one step's text. */
  readonly textLimitBytes: number;
}

/** What one call of Redis takes: more would keep it from others' calls. */
const WRITES_MAX = 64;
const WRITE_CHARS_MAX = 256 * 1024;

/** On its way a text takes up to six times as much of the heap. */
const PASSING_BYTES_MAX = 4 * 1024 * 1024;

const RETRY_SCHEDULE_MS = [100, 200, 500, 1000, 2000, 5000];
/** The ledger has settled by then without this process, and has forgotten nothing. */
const RETRY_AGE_MAX_MS = 6 * 3_600_000;

export class Journal {
  readonly #deps: JournalDeps;
  readonly #room: JournalRoom;
  readonly #gate = new TextGate(PASSING_BYTES_MAX);
  readonly #live = new Set<JournaledStep>();
  readonly #pending = new Set<Promise<void>>();
  readonly #stopped = new AbortController();
  readonly #failures: OnceASecond<unknown>;
  readonly #losses: OnceASecond<AdResponseId>;
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | undefined;

  constructor(deps: JournalDeps) {
    this.#deps = deps;
    this.#room = new JournalRoom(deps.maxBytes);
    const { log } = deps;
    this.#failures = new OnceASecond((err, count) => log.warn({ event: "turn_write_failed", count, err }));
    this.#losses = new OnceASecond((ad_response_id, count) =>
      log.warn({ event: "turn_text_lost", count, ad_response_id }),
    );
  }

  /** Whether another turn's text may be held. */
  get hasRoom(): boolean {
    return !this.#room.isFull;
  }

  get usedBytes(): number {
    return this.#room.usedBytes;
  }

  start(): void {
    if (this.#timer === undefined && !this.#stopped.signal.aborted) {
      this.#timer = setInterval(() => this.#flush(), APPEND_INTERVAL_MS);
    }
  }

  /** Resolves once all ends are confirmed, or the signal fires. Steps that still run end by their leases. */
  async stop(signal?: AbortSignal): Promise<void> {
    clearInterval(this.#timer);
    onAbort(signal, () => this.#stopped.abort());
    while (this.#pending.size > 0) {
      await Promise.all(this.#pending);
    }
    this.#stopped.abort();
    await this.#flushing;
    this.#failures.flush();
    this.#losses.flush();
  }

  /** Begins to write a step down. */
  follow(step: NewStep): JournaledStep {
    const journaled = new JournaledStep(step, this.#host());
    this.#live.add(journaled);
    return journaled;
  }

  #host(): StepHost {
    const { turns, findAd, metrics, textLimitBytes } = this.#deps;
    return {
      turns,
      findAd: (text, ad) => findAd(text, ad, this.#stopped.signal),
      metrics,
      textLimitBytes,
      room: this.#room,
      gate: this.#gate,
      persist: (call) => this.#persist(call),
      onLost: (id) => {
        metrics.lostText.inc();
        this.#losses.add(id);
      },
      onMuchText: () => this.#flush(),
      leave: (step) => this.#live.delete(step),
      track: (work) => this.#track(work),
    };
  }

  #flush(): void {
    this.#flushing ??= this.#writeAll().finally(() => {
      this.#flushing = undefined;
    });
  }

  async #writeAll(): Promise<void> {
    for (const batch of batchesOf(this.#live)) {
      const sentAtMs = performance.now();
      try {
        const answers = await this.#deps.turns.write(batch.map(({ write }) => write));
        for (const [at, { step, write }] of batch.entries()) {
          this.#tell(step, { write, answer: answers[at], sentAtMs });
        }
      } catch (err) {
        // Unconfirmed writes are sent again at the next interval.
        this.#failures.add(err);
        return;
      }
    }
  }

  /** A write without an answer, or with an error, is sent again at the next interval. */
  #tell(step: JournaledStep, { write, answer, sentAtMs }: AnsweredWrite): void {
    if (answer instanceof Error) {
      this.#failures.add(answer);
    } else if (answer !== undefined) {
      step.onWritten(write, answer, sentAtMs);
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch((err: unknown) => this.#deps.log.error({ event: "turn_work_failed", err }))
      .finally(() => this.#pending.delete(tracked));
    this.#pending.add(tracked);
  }

  async #persist<T>(call: () => Promise<T>): Promise<{ value: T; failed: number } | undefined> {
    const startedAtMs = performance.now();
    const { signal } = this.#stopped;
    for (let failed = 0; !signal.aborted; failed += 1) {
      try {
        return { value: await call(), failed };
      } catch (err) {
        this.#failures.add(err);
      }
      const plan = planRetry({
        scheduleMs: RETRY_SCHEDULE_MS,
        failedAttempts: failed + 1,
        ageMs: performance.now() - startedAtMs,
        ageMaxMs: RETRY_AGE_MAX_MS,
        pace: "scheduled",
        retryAfterMs: undefined,
        random: this.#deps.random(),
      });
      if (plan.kind === "too_old") {
        return undefined;
      }
      await wait(plan.delayMs, undefined, { signal }).catch(() => {});
    }
    return undefined;
  }
}

interface PlannedWrite {
  readonly step: JournaledStep;
  readonly write: StepWrite;
}

interface AnsweredWrite {
  readonly write: StepWrite;
  readonly answer: WriteAnswer | undefined;
  readonly sentAtMs: number;
}

/** The writes that are due, in batches of a bounded size. A batch is planned when its turn has come. */
function* batchesOf(steps: Iterable<JournaledStep>): Generator<PlannedWrite[]> {
  let batch: PlannedWrite[] = [];
  let chars = 0;
  for (const step of [...steps]) {
    const write = step.nextWrite(performance.now());
    if (write !== undefined) {
      batch.push({ step, write });
      chars += write.text?.length ?? 0;
    }
    if (batch.length >= WRITES_MAX || chars >= WRITE_CHARS_MAX) {
      yield batch;
      batch = [];
      chars = 0;
    }
  }
  if (batch.length > 0) {
    yield batch;
  }
}
