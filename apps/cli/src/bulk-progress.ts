/** Watches a bulk replay or a bulk discard: polls it and shows its progress on standard error. */
import { setTimeout as wait } from "node:timers/promises";
import cliProgress from "cli-progress";
import type { AdminCall, Answer } from "./admin-client.ts";
import { loadStats, WorkerWatch } from "./relay-state.ts";
import type { Session } from "./session.ts";
import { describeSeconds, type Streams } from "./terminal.ts";

const POLL_MS = 500;
/** After the end, watching goes on while outcomes come in. It ends if none came for this long: retries may take hours. */
const QUIET_MAX_MS = 5000;
/** If nothing has changed for this long, the watch looks whether a worker runs. */
const STANDSTILL_MS = 1500;
const WORKER_LOOK_INTERVAL_MS = 2000;
/** Without a terminal, progress lines are written at most this often. */
const LINE_INTERVAL_MS = 2000;

/** How far a change has come. */
export interface BulkProgress {
  readonly matched: number;
  readonly done: number;
  readonly isRunning: boolean;
  /** Whether it is known what became of each dead letter that was changed. */
  readonly isSettled: boolean;
  /** The progress in words, such as `2 of 4 replayed`. */
  readonly text: string;
  /** The same numbers, short enough for a place behind a bar. */
  readonly shortText: string;
  /** An estimate; undefined if there is none. */
  readonly leftSeconds: number | undefined;
}

export interface BulkWatch<V> {
  readonly call: AdminCall<V>;
  progressOf(view: V): BulkProgress;
}

/** Shows the progress until the change is settled, the operator interrupts, or the gateway is away for too long. */
export async function watchBulk<V>(session: Session, { call, progressOf }: BulkWatch<V>): Promise<Answer<V>> {
  const display = startDisplay(session);
  const workers = startWorkerWatch(session, (line) => display.warn(line));
  let [answeredAtMs, changedAtMs, text] = [performance.now(), performance.now(), ""];
  try {
    for (;;) {
      const answer = await session.client.call(call);
      const nowMs = performance.now();
      if (answer.kind === "ok") {
        const progress = progressOf(answer.value);
        display.show(progress);
        changedAtMs = progress.text === text ? changedAtMs : nowMs;
        [answeredAtMs, text] = [nowMs, progress.text];
        if (!progress.isRunning && (progress.isSettled || nowMs - changedAtMs > QUIET_MAX_MS)) {
          return answer;
        }
        await workers.look(progress.isRunning && nowMs - changedAtMs > STANDSTILL_MS);
      } else if (answer.failure.kind !== "unavailable" || nowMs - answeredAtMs > session.patienceMs) {
        return answer;
      }
      // An interruption ends the wait early. The next call then fails as interrupted.
      await wait(POLL_MS, undefined, { signal: session.signal }).catch(() => {});
    }
  } finally {
    display.stop();
  }
}

/** Warns once in each standstill without a worker: nothing but a worker advances the change. */
function startWorkerWatch(session: Session, warn: (line: string) => void) {
  let watch = new WorkerWatch();
  let [isWarned, lookedAtMs] = [false, Number.NEGATIVE_INFINITY];
  return {
    look: async (standsStill: boolean): Promise<void> => {
      if (!standsStill) {
        [watch, isWarned] = [new WorkerWatch(), false];
        return;
      }
      if (isWarned || performance.now() - lookedAtMs < WORKER_LOOK_INTERVAL_MS) {
        return;
      }
      lookedAtMs = performance.now();
      const stats = await loadStats(session);
      const seconds = stats === undefined ? undefined : watch.silentSeconds(stats);
      if (seconds !== undefined) {
        warn(`No worker has been seen for ${seconds} s: bulk replays and discards need one.`);
        isWarned = true;
      }
    },
  };
}

interface Display {
  show(progress: BulkProgress): void;
  /** Writes a line that stays. */
  warn(line: string): void;
  stop(): void;
}

function startDisplay({ terminal, isJson }: Session): Display {
  if (isJson) {
    return { show: () => {}, warn: (line) => terminal.note(line), stop: () => {} };
  }
  return terminal.canShowBar ? startBar(terminal.streams.stderr) : startLines((line) => terminal.note(line));
}

/** Columns that are kept free for the figures beside the bar. */
const FIGURES_COLUMNS = 75;
/** Moves to the begin of the line, and clears it. */
const CLEAR_LINE = "\r\u001b[2K";

function startBar(stream: Streams["stderr"]): Display {
  const barsize = Math.min(40, Math.max(10, (stream.columns ?? 80) - FIGURES_COLUMNS));
  const bar = new cliProgress.SingleBar(
    { stream, format: "{bar} {percentage}% | {figures}", barsize, hideCursor: true },
    cliProgress.Presets.shades_classic,
  );
  let isStarted = false;
  return {
    show: ({ matched, done, shortText, isRunning, leftSeconds }) => {
      const left = isRunning ? ` | ${describeSeconds(leftSeconds ?? null)} left` : "";
      const figures = `${shortText}${left}`;
      if (!isStarted) {
        bar.start(matched, done, { figures });
        isStarted = true;
      }
      bar.setTotal(matched);
      bar.update(done, { figures });
    },
    warn: (line) => {
      stream.write(`${CLEAR_LINE}${line}\n`);
      // The bar is drawn again only if its text has changed.
      bar.update({ figures: "waits for a worker" });
    },
    stop: () => bar.stop(),
  };
}

function startLines(note: (line: string) => void): Display {
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  let written = "";
  return {
    show: ({ text, isRunning }) => {
      const isDue = performance.now() - writtenAtMs >= LINE_INTERVAL_MS || !isRunning;
      if (isDue && text !== written) {
        note(text);
        [written, writtenAtMs] = [text, performance.now()];
      }
    },
    warn: note,
    stop: () => {},
  };
}
