/** Watches a bulk replay: polls it and shows its progress on standard error. */
import { setTimeout as wait } from "node:timers/promises";
import { type ReplayView, replayViewSchema } from "@adrelay/contract";
import cliProgress from "cli-progress";
import { type Answer, replayPath } from "./admin-client.ts";
import type { Session } from "./session.ts";
import { describeSeconds, type Streams } from "./terminal.ts";

const POLL_MS = 500;
/** Watching goes on while the gateway is unavailable for at most this long, since it may be restarting. */
const UNAVAILABLE_MAX_MS = 30_000;
/** Without a terminal, progress lines are written at most this often. */
const LINE_INTERVAL_MS = 2000;

/** Shows a replay's progress until the replay ends, the operator interrupts, or the gateway is away for too long. */
export async function watchReplay(session: Session, id: string): Promise<Answer<ReplayView>> {
  const progress = startProgress(session);
  let answeredAtMs = performance.now();
  try {
    for (;;) {
      const answer = await session.client.call({ path: replayPath(id), schema: replayViewSchema });
      if (answer.kind === "ok") {
        answeredAtMs = performance.now();
        progress.show(answer.value);
      }
      if (isFinal(answer, performance.now() - answeredAtMs)) {
        return answer;
      }
      // An interruption ends the wait early. The next call then fails as interrupted.
      await wait(POLL_MS, undefined, { signal: session.signal }).catch(() => {});
    }
  } finally {
    progress.stop();
  }
}

function isFinal(answer: Answer<ReplayView>, unavailableMs: number): boolean {
  return answer.kind === "ok"
    ? answer.value.state !== "running"
    : answer.failure.kind !== "unavailable" || unavailableMs > UNAVAILABLE_MAX_MS;
}

interface Progress {
  show(replay: ReplayView): void;
  stop(): void;
}

function startProgress({ terminal, isJson }: Session): Progress {
  if (isJson) {
    return { show: () => {}, stop: () => {} };
  }
  return terminal.canShowBar ? startBar(terminal.streams.stderr) : startLines((line) => terminal.note(line));
}

/** Columns that are kept free for the figures beside the bar. */
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
      // Estimated from the replay's rate, because the bar's own estimate is far off at the beginning.
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
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  let written = "";
  return {
    show: ({ matched, replayed, state }) => {
      const line = `${replayed} of ${matched} replayed`;
      const isDue = performance.now() - writtenAtMs >= LINE_INTERVAL_MS || state !== "running";
      if (isDue && line !== written) {
        note(line);
        [written, writtenAtMs] = [line, performance.now()];
      }
    },
    stop: () => {},
  };
}
