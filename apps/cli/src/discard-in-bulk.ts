/** Discards by a filter, and the command `adrelay queued discard`. */
import type { DiscardView } from "@adrelay/contract";
import { changeInBulk, DEAD_LETTERS, type Things } from "./bulk-changes.ts";
import { defineCommand } from "./command.ts";
import { askWhy, checkWhy } from "./discard-reason.ts";
import { DISCARDS } from "./discards.ts";
import { type ExitCode, UsageError } from "./exit-codes.ts";
import { changeOptions, type DeadFilterArgs, queuedOptions } from "./selection-options.ts";
import type { Session } from "./session.ts";

interface DiscardArgs {
  readonly of: DiscardView["of"];
  readonly filter: DeadFilterArgs;
  readonly why: string | undefined;
  readonly dryRun: boolean;
  readonly wait: boolean;
  readonly yes: boolean;
}

const THINGS: Readonly<Record<DiscardView["of"], Things>> = {
  dead: DEAD_LETTERS,
  queued: { one: "queued acknowledgment", many: "queued acknowledgments" },
};

/** Asks why, counts what a filter covers, asks for confirmation, and discards it. */
export async function discardInBulk(session: Session, args: DiscardArgs): Promise<ExitCode> {
  const { of, filter, dryRun, wait, yes } = args;
  const why = dryRun ? args.why : await askWhy(session, args.why);
  if (typeof why === "number") {
    return why;
  }
  return changeInBulk(session, {
    resource: DISCARDS,
    things: THINGS[of],
    filter,
    // An older gateway refuses a member that it doesn't know, so it is left out where it needn't be there.
    more: { why: why?.trim(), of: of === "dead" ? undefined : of },
    // A discard is final. What dies, or comes, after the question was asked is not part of the answer.
    onlyCounted: true,
    dryRun,
    wait,
    yes,
    ask: (selection, matched) =>
      `Discard ${selection}? ${matched === 1 ? "It" : "They"} will never be delivered.`,
  });
}

export const addQueuedDiscard = defineCommand({
  words: "discard",
  describe: "Gives up all queued acknowledgments that match a filter, which are then never delivered",
  options: (yargs) =>
    changeOptions(queuedOptions(yargs), "All queued acknowledgments")
      .option("why", { type: "string", requiresArg: true, describe: "Why, for the audit" })
      .check(checkQueuedDiscard),
  run: ({ publisher, unknown, since, until, ...args }, session) =>
    discardInBulk(session, { ...args, filter: { publisher, unknown, since, until }, of: "queued" }),
});

/** Requires exactly one of a filter and --all, so that a slip doesn't discard all. */
function checkQueuedDiscard({
  all,
  why,
  ...args
}: DeadFilterArgs & { readonly all?: boolean; readonly why?: string | undefined }): true {
  const { publisher, unknown, since, until } = args;
  const hasFilter = [publisher, unknown, since, until].some((part) => part !== undefined);
  if (hasFilter === (all === true)) {
    throw new UsageError(
      hasFilter
        ? "--all can't be combined with a filter"
        : "select queued acknowledgments: give a filter such as --unknown, or --all",
    );
  }
  if (why !== undefined) {
    checkWhy(why);
  }
  return true;
}
