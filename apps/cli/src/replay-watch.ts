import { setTimeout as wait } from "node:timers/promises";
import { type ReplayView, replayViewSchema } from "@adrelay/contract";
import cliProgress from "cli-progress";
import type { Answer } from "./admin-client.ts";
import { describeSeconds } from "./moments.ts";
import { replayPath } from "./positionals.ts";
import type { Session } from "./session.ts";
import type { Streams } from "./terminal.ts";

const POLL_MS = 500;
/** A gateway that restarts meanwhile may be away for this long. */
const AWAY_MAX_MS = 30_000;
/** Where no bar can move, a line is written at most this often. */
const LINE_INTERVAL_MS = 2000;

/** Shows a replay's progress on standard error until it has ended, or the operator leaves. */
export async function watchReplay(session: Session, id: string): Promise<Answer<ReplayView>> {
  const progress = startProgress(session);
  let seenAtMs = performance.now();
  try {
    for (;;) {
      const answer = await session.client.call({ path: replayPath(id), schema: replayViewSchema });
      if (answer.kind === "ok") {
        seenAtMs = performance.now();
        progress.show(answer.value);
      }
      if (isFinal(answer, performance.now() - seenAtMs)) {
        return answer;
      }
      // The signal ends the wait; the next call tells that it was an interruption.
      await wait(POLL_MS, undefined, { signal: session.signal }).catch(() => {});
    }
  } finally {
    progress.stop();
  }
}

function isFinal(answer: Answer<ReplayView>, awayMs: number): boolean {
  return answer.kind === "ok"
    ? answer.value.state !== "running"
    : answer.failure.kind !== "unavailable" || awayMs > AWAY_MAX_MS;
}

interface Progress {
  show(replay: ReplayView): void;
  stop(): void;
}

function startProgress({ terminal, isJson }: Session): Progress {
  if (isJson) {
    return { show: () => {}, stop: () => {} };
  }
  return terminal.canMove ? startBar(terminal.streams.stderr) : startLines((line) => terminal.note(line));
}

/** Columns that the figures beside a bar may take. */
const FIGURES_COLUMNS = 40;

function startBar(stream: Streams["stderr"]): Progress {
  const barsize = Math.min(40, Math.max(10, (stream.columns ?? 80) - FIGURES_COLUMNS));
  const bar = new cliProgress.SingleBar(
    { stream, format: "{bar} {percentage}% | {value} of {total} | {left} left", barsize, hideCursor: true },
    cliProgress.Presets.shades_classic,
  );
  let isStarted = false;
  return {
    show: ({ matched, replayed, rate_per_second }) => {
      // At the rate that was asked for: early on the bar's own guess is far off.
      const left = describeSeconds((matched - replayed) / rate_per_second);
      if (!isStarted) {
        bar.start(matched, replayed, { left });
        isStarted = true;
      }
      bar.setTotal(matched);
      bar.update(replayed, { left });
    },
    stop: () => bar.stop(),
  };
}

function startLines(note: (line: string) => void): Progress {
  let saidAtMs = Number.NEGATIVE_INFINITY;
  let said = "";
  return {
    show: ({ matched, replayed, state }) => {
      const line = `${replayed} of ${matched} replayed`;
      const isDue = performance.now() - saidAtMs >= LINE_INTERVAL_MS || state !== "running";
      if (isDue && line !== said) {
        note(line);
        [said, saidAtMs] = [line, performance.now()];
      }
    },
    stop: () => {},
  };
}
