/** What commands on bulk replays and on bulk discards have in common: count, ask, start, follow, list, show, cancel. */
import { dryRunSchema, type FilterView } from "@adrelay/contract";
import type { z } from "zod";
import { type BulkProgress, watchBulk } from "./bulk-progress.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { noteCodes } from "./lists.ts";
import type { DeadFilterArgs } from "./selection-options.ts";
import { confirm, type Session, showAnswer, showCall, showFailure } from "./session.ts";
import { describeMembers, type Terminal } from "./terminal.ts";

/** Bulk replays or bulk discards. */
export interface BulkResource<V> {
  readonly noun: "replay" | "discard";
  readonly schema: z.ZodType<V>;
  idOf(view: V): string;
  progressOf(view: V): BulkProgress;
  /** Whether it ended before it had changed all. */
  endedEarly(view: V): boolean;
  /** Why it didn't help, although it did all; undefined if it did. */
  failureOf(view: V): string | undefined;
  show(terminal: Terminal, view: V, nowMs: number): void;
}

/** What a change covers, in words for one and for many. */
export interface Things {
  readonly one: string;
  readonly many: string;
}

export const DEAD_LETTERS: Things = { one: "dead letter", many: "dead letters" };

export interface BulkStart<V> {
  readonly resource: BulkResource<V>;
  readonly things: Things;
  readonly filter: DeadFilterArgs;
  /** Further members of the call's body. */
  readonly more: Readonly<Record<string, unknown>>;
  /** A start covers only those that were counted for the question. */
  readonly onlyCounted: boolean;
  readonly dryRun: boolean;
  readonly wait: boolean;
  readonly yes: boolean;
  /** What to tell before the question. */
  warn?(matched: number): Promise<readonly string[]>;
  /** @param selection what would be changed, such as `all 11 dead letters` */
  ask(selection: string, matched: number): string;
}

/** Counts what matches, asks for confirmation, and starts the change. */
export async function changeInBulk<V>(session: Session, bulk: BulkStart<V>): Promise<ExitCode> {
  const { filter, more, onlyCounted, things } = bulk;
  const counted = await session.client.call({
    path: pathOf(bulk.resource),
    body: { ...filter, ...more, dry_run: true },
    schema: dryRunSchema,
  });
  const { matched, complete, until } = counted.kind === "ok" ? counted.value : NOTHING_COUNTED;
  const number = describeCount(matched, complete);
  const isNone = matched === 0 && complete;
  if (bulk.dryRun || isNone) {
    const exit = showAnswer(session, counted, () => session.terminal.print(`${number} ${things.many} match`));
    if (counted.kind === "ok" && isNone) {
      await noteCodes(session, filter);
    }
    return exit;
  }
  for (const line of (await bulk.warn?.(matched)) ?? []) {
    session.terminal.note(line);
  }
  const selection = describeSelection(`${number} ${matched === 1 ? things.one : things.many}`, filter);
  const exit = await confirm(session, bulk.yes, bulk.ask(selection, matched));
  const bound = onlyCounted && until !== undefined ? { until } : {};
  return exit === EXIT.done ? start(session, bulk, { ...filter, ...more, ...bound }) : exit;
}

const NOTHING_COUNTED = { matched: 0, complete: true, until: undefined } as const;

/** The gateway may have run out of time before it found the first one. */
function describeCount(matched: number, isComplete: boolean): string {
  if (isComplete) {
    return String(matched);
  }
  return matched === 0 ? "an unknown number of" : `at least ${matched}`;
}

async function start<V>(
  session: Session,
  { resource, wait }: BulkStart<V>,
  body: Readonly<Record<string, unknown>>,
): Promise<ExitCode> {
  const { schema } = resource;
  const change = { look: `${resource.noun}s list` };
  const started = await session.client.call({ path: pathOf(resource), body, change, schema });
  if (started.kind === "failed") {
    return showFailure(session, started.failure);
  }
  return wait
    ? followBulk(session, resource, resource.idOf(started.value))
    : showAnswer(session, started, (view) => resource.show(session.terminal, view, session.now()));
}

/** Watches a change until it ends, then shows it. The exit code is `refused` if it ended early or didn't help. */
export async function followBulk<V>(
  session: Session,
  resource: BulkResource<V>,
  id: string,
): Promise<ExitCode> {
  const { noun } = resource;
  const call = { path: pathOf(resource, id), schema: resource.schema };
  const answer = await watchBulk(session, { call, progressOf: resource.progressOf });
  if (answer.kind === "failed" && answer.failure.kind !== "refused" && answer.failure.kind !== "denied") {
    session.terminal.note(
      `The ${noun} continues without this command. Watch it: ${session.calledAs} ${noun}s show ${id} --watch`,
    );
    session.terminal.note(`Cancel it: ${session.calledAs} ${noun}s cancel ${id}`);
  }
  const exit = showAnswer(session, answer, (view) => resource.show(session.terminal, view, session.now()));
  if (answer.kind === "failed") {
    return exit;
  }
  if (!resource.progressOf(answer.value).isSettled) {
    session.terminal.note(
      `Some still wait for their delivery. See later: ${session.calledAs} ${noun}s show ${id}`,
    );
  }
  const failure = resource.failureOf(answer.value);
  if (failure !== undefined) {
    session.terminal.note(failure);
  }
  return resource.endedEarly(answer.value) || failure !== undefined ? EXIT.refused : exit;
}

/** Shows one change. */
export function showBulk<V>(session: Session, resource: BulkResource<V>, id: string): Promise<ExitCode> {
  return showCall(session, { path: pathOf(resource, id), schema: resource.schema }, (view) =>
    resource.show(session.terminal, view, session.now()),
  );
}

/** Cancels one change, and shows it. */
export function cancelBulk<V>(session: Session, resource: BulkResource<V>, id: string): Promise<ExitCode> {
  const change = { look: `${resource.noun}s show ${id}` };
  const call = { path: `${pathOf(resource, id)}/cancel`, body: {}, change, schema: resource.schema };
  return showCall(session, call, (view) => resource.show(session.terminal, view, session.now()));
}

function pathOf<V>({ noun }: BulkResource<V>, id?: string): string {
  return id === undefined ? `/${noun}s` : `/${noun}s/${encodeURIComponent(id)}`;
}

export function describeFilter(filter: FilterView): string {
  return describeMembers(filter) || "all";
}

/** Why a change that went through all didn't change some; null if there are none. */
export function describeLeftOut(state: string, count: number, of = "dead"): string | null {
  return state === "completed" && count > 0
    ? `${count} ${count === 1 ? "was" : "were"} no longer ${of} when it came to ${count === 1 ? "it" : "them"}`
    : null;
}

/** What a question is about, such as `11 dead letters (reason=http_404)`, or `all 11 dead letters`. */
function describeSelection(things: string, filter: DeadFilterArgs): string {
  const { publisher, reason, code, unknown, since, until } = filter;
  const members = describeMembers({ publisher, reason, code, unknown, since, until });
  return members === "" ? `all ${things}` : `${things} (${members})`;
}
