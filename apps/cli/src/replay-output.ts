import type { ReplayView } from "@adrelay/contract";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { describeMembers } from "./members.ts";
import { describeMoment } from "./moments.ts";
import { watchReplay } from "./replay-watch.ts";
import { type Session, showAnswer } from "./session.ts";
import type { Terminal } from "./terminal.ts";

export function showReplays(terminal: Terminal, replays: readonly ReplayView[], nowMs: number): void {
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

export function showReplay(terminal: Terminal, replay: ReplayView, nowMs: number): void {
  const moment = (time: string | null) => (time === null ? null : describeMoment(time, nowMs));
  terminal.facts({
    replay: replay.replay_id,
    state: replay.state,
    replayed: `${replay.replayed} of ${replay.matched} put back on the queue`,
    rate: `${replay.rate_per_second} a second`,
    filter: describeFilter(replay.filter),
    by: replay.created_by,
    started: moment(replay.created_at),
    updated: moment(replay.updated_at),
    ended: moment(replay.ended_at),
  });
}

/** Watches to the end and shows it: `refused` if somebody cancelled it meanwhile. */
export async function followReplay(session: Session, id: string): Promise<ExitCode> {
  const answer = await watchReplay(session, id);
  if (answer.kind === "failed" && answer.failure.kind !== "refused" && answer.failure.kind !== "denied") {
    session.terminal.note(
      `The replay goes on without us. See it: ${session.calledAs} replays show ${id} --watch`,
    );
    session.terminal.note(`Cancel it: ${session.calledAs} replays cancel ${id}`);
  }
  const exit = showAnswer(session, answer, (replay) => showReplay(session.terminal, replay, session.now()));
  return answer.kind === "ok" && answer.value.state === "cancelled" ? EXIT.refused : exit;
}

function describeFilter(filter: ReplayView["filter"]): string {
  return describeMembers(filter) || "all";
}
