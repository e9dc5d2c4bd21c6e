/** Replays and discards of single acknowledgments, by their ids, with one call each. */

import { setTimeout as wait } from "node:timers/promises";
import {
  type AcknowledgmentDetail,
  acknowledgmentDetailSchema,
  acknowledgmentStateSchema,
} from "@adrelay/contract";
import type { z } from "zod";
import { type Answer, acknowledgmentPath } from "./admin-client.ts";
import { askWhy } from "./discard-reason.ts";
import { changeEachId } from "./each-id.ts";
import { EXIT, type ExitCode, joinSentences } from "./exit-codes.ts";
import { callPatiently } from "./patient-call.ts";
import { describeOpenCircuits, hasWorker, loadStats } from "./relay-state.ts";
import { confirm, type Session, showFailure } from "./session.ts";
import { describeAge, printable } from "./terminal.ts";

const POLL_MS = 250;
/** An outcome usually comes at once. Retries may take hours. */
const OUTCOME_WAIT_MAX_MS = 5000;

/**
 * Puts dead letters back on the queue. With `wait` it tells what became of each within a few seconds, and the exit code is
 * `refused` if one died again. With --json nothing is waited for, because the replay's answer is the only output.
 */
export async function replayEach(
  session: Session,
  ids: readonly string[],
  { wait: isWaiting }: { readonly wait: boolean },
): Promise<ExitCode> {
  const replayed: string[] = [];
  const isTelling = isWaiting && !session.isJson;
  const exit = await changeEach(session, ids, {
    action: "replay",
    body: {},
    onDone: (id, state) => (isTelling ? replayed.push(id) : printState(session, id, state)),
  });
  const outcome = replayed.length > 0 ? await tellOutcomes(session, replayed) : EXIT.done;
  return exit === EXIT.done ? outcome : exit;
}

/** Prints a line for each in order, all within one limit. If it must end before, it says how to look for each of the others. */
async function tellOutcomes(session: Session, ids: readonly string[]): Promise<ExitCode> {
  const { terminal } = session;
  const untilMs = performance.now() + OUTCOME_WAIT_MAX_MS;
  let worst: ExitCode = EXIT.done;
  const waiting: AcknowledgmentDetail[] = [];
  for (const [at, id] of ids.entries()) {
    const answer = await awaitOutcome(session, id, untilMs);
    if (answer.kind === "failed") {
      for (const untold of ids.slice(at)) {
        terminal.note(
          `${untold} is back on the queue. What became of it: ${session.calledAs} lookup ${untold}`,
        );
      }
      return showFailure(session, answer.failure);
    }
    const found = answer.value;
    terminal.print(`${id}  ${printable(describeOutcome(found, session.now()))}`);
    worst = found.state === "dead" || found.state === "refused" ? EXIT.refused : worst;
    waiting.push(...(found.state === "queued" ? [found] : []));
  }
  if (waiting.length > 0) {
    await noteWaits(session, waiting);
  }
  return worst;
}

/**
 * The acknowledgment once it isn't queued any more, or as it is when the time is over. Until then, a gateway that is unavailable
 * is asked again.
 */
async function awaitOutcome(
  session: Session,
  id: string,
  untilMs: number,
): Promise<Answer<AcknowledgmentDetail>> {
  for (;;) {
    const answer = await session.client.call({
      path: acknowledgmentPath(id),
      schema: acknowledgmentDetailSchema,
    });
    const isOpen =
      answer.kind === "ok" ? answer.value.state === "queued" : answer.failure.kind === "unavailable";
    if (!isOpen || performance.now() >= untilMs) {
      return answer;
    }
    // An interruption ends the wait early. The next call then fails as interrupted.
    await wait(POLL_MS, undefined, { signal: session.signal }).catch(() => {});
  }
}

function describeOutcome(one: AcknowledgmentDetail, nowMs: number): string {
  const listed = (...parts: readonly (string | null)[]) => {
    const given = parts.filter((part) => part !== null);
    return given.length === 0 ? "" : ` (${given.join(", ")})`;
  };
  switch (one.state) {
    case "dead":
      return `dead again${listed(one.reason, one.last_code === one.reason ? null : one.last_code, one.provider_error)}`;
    case "queued": {
      // The last code may be of an attempt before the replay.
      const code = one.failed_attempts > 0 ? one.last_code : null;
      const next = one.next_attempt_at;
      return `waits${listed(code, next === null ? null : `next attempt ${describeAge(next, nowMs)}`)}`;
    }
    default:
      return one.state;
  }
}

async function noteWaits(session: Session, waiting: readonly AcknowledgmentDetail[]): Promise<void> {
  const { terminal, calledAs } = session;
  const stats = await loadStats(session);
  if (stats !== undefined) {
    const publishers = new Set(waiting.map(({ publisher }) => publisher));
    const circuits = [...publishers].flatMap((publisher) => describeOpenCircuits(stats, publisher));
    for (const line of new Set(circuits)) {
      terminal.note(line);
    }
    if (!hasWorker(stats)) {
      terminal.note("No worker runs: nothing is delivered.");
    }
  }
  terminal.note(`See later: ${calledAs} lookup ${waiting[0]?.ad_response_id}`);
}

export async function discardEach(
  session: Session,
  ids: readonly string[],
  { why, yes }: { readonly why: string | undefined; readonly yes: boolean },
): Promise<ExitCode> {
  const reason = await askWhy(session, why);
  if (typeof reason === "number") {
    return reason;
  }
  const question =
    ids.length === 1
      ? "Discard this acknowledgment? It will never be delivered."
      : `Discard these ${ids.length} acknowledgments? They will never be delivered.`;
  const exit = await confirm(session, yes, question);
  return exit === EXIT.done
    ? changeEach(session, ids, {
        action: "discard",
        body: { reason: reason.trim() },
        onDone: (id, state) => printState(session, id, state),
      })
    : exit;
}

interface Change {
  /** Last part of the call's path. */
  readonly action: keyof typeof STATES_AFTER;
  readonly body: Readonly<Record<string, unknown>>;
  onDone(id: string, state: string): void;
}

function printState({ terminal }: Session, id: string, state: string): void {
  terminal.print(`${id}  ${printable(state)}`);
}

/** States that a change leads to. A replay's delivery may have ended by the time of a look-up. */
const STATES_AFTER = {
  replay: ["queued", "delivered", "refused"],
  discard: ["discarded"],
} as const satisfies Readonly<Record<string, readonly AcknowledgmentDetail["state"][]>>;

function changeEach(session: Session, ids: readonly string[], change: Change): Promise<ExitCode> {
  return changeEachId(session, ids, {
    verb: "changed",
    change: (id) => changeOne(session, id, change),
    onDone: (id, { state }) => change.onDone(id, state),
  });
}

/**
 * A call that got no result may have made the change, and its repeat is then refused. So the state decides whether the change was
 * made.
 */
async function changeOne(
  session: Session,
  id: string,
  { action, body }: Change,
): Promise<Answer<z.infer<typeof acknowledgmentStateSchema>>> {
  const path = acknowledgmentPath(id);
  const answer = await callPatiently(session, {
    path: `${path}/${action}`,
    body,
    change: { look: `lookup ${id}` },
    schema: acknowledgmentStateSchema,
  });
  if (answer.kind === "ok" || answer.failure.kind !== "refused" || answer.failure.doubt === undefined) {
    return answer;
  }
  const { doubt } = answer.failure;
  const found = await callPatiently(session, { path, schema: acknowledgmentDetailSchema });
  if (found.kind === "failed") {
    const message = joinSentences(found.failure.message, doubt);
    return { kind: "failed", failure: { ...found.failure, message, doubt } };
  }
  return STATES_AFTER[action].some((state) => state === found.value.state) ? found : answer;
}
