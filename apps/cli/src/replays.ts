/** Bulk replays: how they are shown, and the commands `adrelay replays …`. */
import { type ReplayView, replayListSchema, replayViewSchema } from "@adrelay/contract";
import { type BulkResource, describeFilter, describeLeftOut } from "./bulk-changes.ts";
import { defineBulkCommands } from "./bulk-commands.ts";
import { countDeaths, describeDeaths, describeFailure, describeOutcomes } from "./replay-outcomes.ts";
import { describeMoment, type Terminal } from "./terminal.ts";

export const REPLAYS: BulkResource<ReplayView> = {
  noun: "replay",
  schema: replayViewSchema,
  idOf: ({ replay_id }) => replay_id,
  progressOf: ({ matched, replayed, state, outcomes, rate_per_second }) => ({
    matched,
    done: replayed,
    isRunning: state === "running",
    isSettled: outcomes === null || outcomes.waiting <= 0,
    text: [`${replayed} of ${matched} replayed`, ...describeOutcomes(outcomes)].join(": "),
    shortText: [`${replayed} of ${matched}`, ...describeOutcomes(outcomes, { isShort: true })].join(": "),
    // Estimated from the replay's rate, because a bar's own estimate is far off at the beginning.
    leftSeconds: (matched - replayed) / rate_per_second,
  }),
  endedEarly: ({ state }) => state === "cancelled" || state === "stopped",
  failureOf: describeFailure,
  show: showReplay,
};

export const addAllReplays = defineBulkCommands({
  resource: REPLAYS,
  listSchema: replayListSchema,
  showList: (terminal, { replays }, nowMs) => showReplays(terminal, replays, nowMs),
  about: {
    show: ", and what became of the dead letters that it put back",
    cancel: "dead letters that it has put back stay on the queue",
  },
});

function showReplays(terminal: Terminal, replays: readonly ReplayView[], nowMs: number): void {
  if (replays.length === 0) {
    terminal.note("No bulk replays yet.");
    return;
  }
  const rows = replays.map((replay) => [
    replay.replay_id,
    replay.state,
    `${replay.replayed} of ${replay.matched}`,
    replay.outcomes?.delivered ?? "-",
    replay.outcomes === null ? "-" : countDeaths(replay.outcomes),
    replay.outcomes?.waiting ?? "-",
    describeFilter(replay.filter),
    replay.created_by,
    describeMoment(replay.created_at, nowMs),
  ]);
  const titles = [
    "REPLAY",
    "STATE",
    "REPLAYED",
    "DELIVERED",
    "DEAD AGAIN",
    "WAITING",
    "FILTER",
    "BY",
    "STARTED",
  ];
  terminal.table(titles, rows);
}

function showReplay(terminal: Terminal, replay: ReplayView, nowMs: number): void {
  const moment = (time: string | null) => (time === null ? null : describeMoment(time, nowMs));
  const { outcomes, stop_at_share: share } = replay;
  terminal.facts({
    replay: replay.replay_id,
    state: replay.state === "stopped" ? "stopped: most failed again" : replay.state,
    replayed: `${replay.replayed} of ${replay.matched} put back on the queue`,
    "left out": describeLeftOut(replay.state, replay.matched - replay.replayed),
    delivered: outcomes?.delivered,
    "dead again": outcomes === null ? null : describeDeaths(outcomes.dead),
    refused: outcomes?.refused || null,
    discarded: outcomes?.discarded || null,
    waiting: outcomes?.waiting,
    rate: `${replay.rate_per_second} per second`,
    stops: share === null ? "never by itself" : describeStop(share, replay.stop_after),
    filter: describeFilter(replay.filter),
    by: replay.created_by,
    started: moment(replay.created_at),
    updated: moment(replay.updated_at),
    ended: moment(replay.ended_at),
  });
}

/** Such as `once 20 have ended, if half of them or more have failed again`. */
function describeStop(share: number, least: number | null): string {
  const much =
    share === 1
      ? "all of them"
      : `${share === 0.5 ? "half" : `${Math.round(share * 1000) / 10} %`} of them or more`;
  return `once ${least ?? "enough"} have ended, if ${much} have failed again`;
}
