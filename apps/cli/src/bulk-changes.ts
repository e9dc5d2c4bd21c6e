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
  show(terminal: Terminal, view: V, nowMs: number): void;
}

export interface BulkStart<V> {
  readonly resource: BulkResource<V>;
  readonly filter: DeadFilterArgs;
  /** Further members of the call's body. */
  readonly more: Readonly<Record<string, unknown>>;
  /** A start covers only those that were counted for the question. */
  readonly onlyCounted: boolean;
  readonly dryRun: boolean;
  readonly wait: boolean;
  readonly yes: boolean;
  ask(matched: number): string;
}

/** Counts the dead letters that match, asks for confirmation, and starts the change. */
export async function changeInBulk<V>(session: Session, bulk: BulkStart<V>): Promise<ExitCode> {
  const { filter, more, onlyCounted } = bulk;
  const counted = await session.client.call({
    path: pathOf(bulk.resource),
    body: { ...filter, ...more, dry_run: true },
    schema: dryRunSchema,
  });
  const { matched, until } = counted.kind === "ok" ? counted.value : { matched: 0, until: undefined };
  if (bulk.dryRun || matched === 0) {
    const exit = showAnswer(session, counted, () => session.terminal.print(`${matched} dead letters match`));
    if (counted.kind === "ok" && matched === 0) {
      await noteCodes(session, filter);
    }
    return exit;
  }
  const exit = await confirm(session, bulk.yes, bulk.ask(matched));
  const bound = onlyCounted && until !== undefined ? { until } : {};
  return exit === EXIT.done ? start(session, bulk, { ...filter, ...more, ...bound }) : exit;
}

async function start<V>(
  session: Session,
  { resource, wait }: BulkStart<V>,
  body: Readonly<Record<string, unknown>>,
): Promise<ExitCode> {
  const { schema } = resource;
  const started = await session.client.call({ path: pathOf(resource), body, schema });
  if (started.kind === "failed") {
    return showFailure(session, started.failure);
  }
  return wait
    ? followBulk(session, resource, resource.idOf(started.value))
    : showAnswer(session, started, (view) => resource.show(session.terminal, view, session.now()));
}

/** Watches a change until it ends, then shows it. The exit code is `refused` if it ended early. */
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
  return resource.endedEarly(answer.value) ? EXIT.refused : exit;
}

/** Shows one change. */
export function showBulk<V>(session: Session, resource: BulkResource<V>, id: string): Promise<ExitCode> {
  return showCall(session, { path: pathOf(resource, id), schema: resource.schema }, (view) =>
    resource.show(session.terminal, view, session.now()),
  );
}

/** Cancels one change, and shows it. */
export function cancelBulk<V>(session: Session, resource: BulkResource<V>, id: string): Promise<ExitCode> {
  const call = { path: `${pathOf(resource, id)}/cancel`, body: {}, schema: resource.schema };
  return showCall(session, call, (view) => resource.show(session.terminal, view, session.now()));
}

function pathOf<V>({ noun }: BulkResource<V>, id?: string): string {
  return id === undefined ? `/${noun}s` : `/${noun}s/${encodeURIComponent(id)}`;
}

export function describeFilter(filter: FilterView): string {
  return describeMembers(filter) || "all";
}

/** What a question is about, such as `11 dead letters (reason=http_404)`, or `all 11 dead letters`. */
export function describeSelection(matched: number, filter: DeadFilterArgs): string {
  const { publisher, reason, code, since, until } = filter;
  const members = describeMembers({ publisher, reason, code, since, until });
  const things = `${matched} dead ${matched === 1 ? "letter" : "letters"}`;
  return members === "" ? `all ${things}` : `${things} (${members})`;
}
