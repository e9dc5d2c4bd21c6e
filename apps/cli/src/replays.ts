/** Bulk replays: how `adrelay dead replay` starts one, and the commands `adrelay replays …`. */
import {
  REPLAY_RATE_DEFAULT,
  type ReplayView,
  replayDryRunSchema,
  replayListSchema,
  replayViewSchema,
} from "@adrelay/contract";
import { replayPath } from "./admin-client.ts";
import { defineCommand, replayPositional } from "./command.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { watchReplay } from "./replay-progress.ts";
import { confirm, type Session, showAnswer, showCall, showFailure } from "./session.ts";
import { describeMembers, describeMoment, type Terminal } from "./terminal.ts";

export interface BulkReplay {
  readonly filter: Readonly<Record<"publisher" | "reason" | "since" | "until", string | undefined>>;
  /** Dead letters per second; undefined for the gateway's default. */
  readonly rate: number | undefined;
  readonly dryRun: boolean;
  readonly wait: boolean;
  readonly yes: boolean;
}

/** Counts the dead letters that match, asks for confirmation, and starts the replay. */
export async function replayInBulk(session: Session, bulk: BulkReplay): Promise<ExitCode> {
  const body = { ...bulk.filter, rate_per_second: bulk.rate };
  const counted = await session.client.call({
    path: "/replays",
    body: { ...body, dry_run: true },
    schema: replayDryRunSchema,
  });
  const matched = counted.kind === "ok" ? counted.value.matched : 0;
  if (bulk.dryRun || matched === 0) {
    return showAnswer(session, counted, () => session.terminal.print(`${matched} dead letters match`));
  }
  const rate = bulk.rate ?? REPLAY_RATE_DEFAULT;
  const exit = await confirm(session, bulk.yes, `Replay ${matched} dead letters at ${rate} per second?`);
  return exit === EXIT.done ? startReplay(session, body, bulk.wait) : exit;
}

async function startReplay(
  session: Session,
  body: Readonly<Record<string, unknown>>,
  isWatched: boolean,
): Promise<ExitCode> {
  const started = await session.client.call({ path: "/replays", body, schema: replayViewSchema });
  if (started.kind === "failed") {
    return showFailure(session, started.failure);
  }
  if (isWatched) {
    return followReplay(session, started.value.replay_id);
  }
  return showAnswer(session, started, (replay) => showReplay(session.terminal, replay, session.now()));
}

export const addReplaysList = defineCommand({
  words: "list",
  describe: "Lists the latest bulk replays, newest first",
  options: (yargs) => yargs,
  run: (_args, session) =>
    showCall(session, { path: "/replays", schema: replayListSchema }, ({ replays }) =>
      showReplays(session.terminal, replays, session.now()),
    ),
});

export const addReplaysShow = defineCommand({
  words: "show <id>",
  describe: "Shows one bulk replay",
  options: (yargs) =>
    yargs
      .positional("id", replayPositional)
      .demandOption("id")
      .option("watch", { type: "boolean", default: false, describe: "Show the progress until the end" }),
  run: ({ id, watch }, session) =>
    watch
      ? followReplay(session, id)
      : showCall(session, { path: replayPath(id), schema: replayViewSchema }, (replay) =>
          showReplay(session.terminal, replay, session.now()),
        ),
});

export const addReplaysCancel = defineCommand({
  words: "cancel <id>",
  describe: "Cancels a bulk replay; dead letters that it has put back stay on the queue",
  options: (yargs) => yargs.positional("id", replayPositional).demandOption("id"),
  run: ({ id }, session) =>
    showCall(session, { path: `${replayPath(id)}/cancel`, body: {}, schema: replayViewSchema }, (replay) =>
      showReplay(session.terminal, replay, session.now()),
    ),
});

/** Watches a replay until it ends, then shows it. The exit code is `refused` if an operator cancelled it. */
async function followReplay(session: Session, id: string): Promise<ExitCode> {
  const answer = await watchReplay(session, id);
  if (answer.kind === "failed" && answer.failure.kind !== "refused" && answer.failure.kind !== "denied") {
    session.terminal.note(
      `The replay continues without this command. Watch it: ${session.calledAs} replays show ${id} --watch`,
    );
    session.terminal.note(`Cancel it: ${session.calledAs} replays cancel ${id}`);
  }
  const exit = showAnswer(session, answer, (replay) => showReplay(session.terminal, replay, session.now()));
  return answer.kind === "ok" && answer.value.state === "cancelled" ? EXIT.refused : exit;
}

function showReplays(terminal: Terminal, replays: readonly ReplayView[], nowMs: number): void {
  if (replays.length === 0) {
    terminal.note("No bulk replays yet.");
    return;
  }
  const rows = replays.map((replay) => [
    replay.replay_id,
    replay.state,
    `${replay.replayed} of ${replay.matched}`,
    describeFilter(replay.filter),
    replay.created_by,
    describeMoment(replay.created_at, nowMs),
  ]);
  terminal.table(["REPLAY", "STATE", "REPLAYED", "FILTER", "BY", "STARTED"], rows);
}

function showReplay(terminal: Terminal, replay: ReplayView, nowMs: number): void {
  const moment = (time: string | null) => (time === null ? null : describeMoment(time, nowMs));
  terminal.facts({
    replay: replay.replay_id,
    state: replay.state,
    replayed: `${replay.replayed} of ${replay.matched} put back on the queue`,
    rate: `${replay.rate_per_second} per second`,
    filter: describeFilter(replay.filter),
    by: replay.created_by,
    started: moment(replay.created_at),
    updated: moment(replay.updated_at),
    ended: moment(replay.ended_at),
  });
}

function describeFilter(filter: ReplayView["filter"]): string {
  return describeMembers(filter) || "all";
}
