/**
 * The commands `adrelay dead …` that show, replay and discard dead letters. A discard of ids also takes queued
 * acknowledgments.
 */
import {
  acknowledgmentDetailSchema,
  REPLAY_RATE_DEFAULT,
  REPLAY_SAMPLE_DEFAULT,
  statsSchema,
} from "@adrelay/contract";
import { acknowledgmentPath } from "./admin-client.ts";
import { changeInBulk, DEAD_LETTERS } from "./bulk-changes.ts";
import { adResponsePositional, adResponsesPositional, defineCommand } from "./command.ts";
import { discardInBulk } from "./discard-in-bulk.ts";
import { checkWhy } from "./discard-reason.ts";
import { EXIT, type ExitCode, UsageError } from "./exit-codes.ts";
import { showAcknowledgment } from "./lookup-and-audit.ts";
import { describeOpenCircuits, loadStats } from "./relay-state.ts";
import { REPLAYS } from "./replays.ts";
import {
  bulkOptions,
  type DeadFilterArgs,
  rateOption,
  stopAfterOption,
  stopShareOption,
} from "./selection-options.ts";
import { type Session, showAnswer } from "./session.ts";
import { discardEach, replayEach } from "./single-changes.ts";

export const addDeadShow = defineCommand({
  words: "show <id>",
  describe: "Shows one dead letter with its attempts; fails if it is not a dead letter",
  options: (yargs) => yargs.positional("id", adResponsePositional).demandOption("id"),
  run: async ({ id }, session) => {
    const answer = await session.client.call({
      path: acknowledgmentPath(id),
      schema: acknowledgmentDetailSchema,
    });
    const exit = showAnswer(session, answer, (found) =>
      showAcknowledgment(session.terminal, found, session.now()),
    );
    if (answer.kind === "ok" && answer.value.state !== "dead") {
      session.terminal.note(`adrelay: this is not a dead letter: its state is ${answer.value.state}`);
      return EXIT.refused;
    }
    return exit;
  },
});

export const addDeadReplay = defineCommand({
  words: "replay [ids..]",
  describe: "Puts dead letters back on the queue: those with the given ids, or all that match a filter",
  options: (yargs) =>
    bulkOptions(yargs.positional("ids", adResponsesPositional))
      .option("rate", rateOption)
      .option("stop-at-share", stopShareOption)
      .option("stop-after", stopAfterOption)
      .check(checkSelection),
  run: async ({ ids = [], rate, dryRun, ...args }, session) => {
    const { publisher, reason, code, unknown, since, until } = args;
    if (ids.length > 0) {
      const exit = await replayEach(session, ids, { wait: args.wait });
      return noteGonePublishers(session, exit, undefined);
    }
    const exit = await changeInBulk(session, {
      resource: REPLAYS,
      things: DEAD_LETTERS,
      filter: { publisher, reason, code, unknown, since, until },
      more: { rate_per_second: rate, stop_at_share: args.stopAtShare, stop_after: args.stopAfter },
      onlyCounted: false,
      dryRun,
      wait: args.wait,
      yes: args.yes,
      warn: async (matched) => [
        ...describeSample(matched, args),
        ...(await describeWaits(session, publisher)),
      ],
      ask: (selection) => `Replay ${selection} at ${rate ?? REPLAY_RATE_DEFAULT} per second?`,
    });
    return dryRun ? exit : noteGonePublishers(session, exit, publisher);
  },
});

/** What a replay puts back for a publisher that is gone waits, which the replay itself doesn't show. Returns the exit code. */
async function noteGonePublishers(
  session: Session,
  exit: ExitCode,
  publisher: string | undefined,
): Promise<ExitCode> {
  if (session.isJson || exit !== EXIT.done) {
    return exit;
  }
  const stats = await session.client.call({ path: "/stats", schema: statsSchema });
  const gone = stats.kind === "ok" ? stats.value.gone_publishers : [];
  for (const { publisher: one, queued } of gone) {
    if (queued > 0 && (publisher === undefined || publisher === one)) {
      session.terminal.note(
        `${one} is gone from the settings, so its ${queued} queued wait. Put it back, or give them to another publisher: ${session.calledAs} publishers adopt ${one} OTHER`,
      );
    }
  }
  return exit;
}

/** A replay stops by itself only while others still wait for the sample. */
function describeSample(
  matched: number,
  { stopAtShare, stopAfter = REPLAY_SAMPLE_DEFAULT }: StopArgs,
): string[] {
  return stopAtShare === null || matched > stopAfter
    ? []
    : [
        `So few can't stop by themselves if they fail again: that needs more than ${stopAfter} (--stop-after).`,
      ];
}

interface StopArgs {
  readonly stopAtShare?: number | null | undefined;
  readonly stopAfter?: number | undefined;
}

async function describeWaits(session: Session, publisher: string | undefined): Promise<string[]> {
  const stats = await loadStats(session);
  return stats === undefined ? [] : describeOpenCircuits(stats, publisher);
}

interface Selection extends DeadFilterArgs {
  readonly ids?: readonly string[] | undefined;
  readonly all?: boolean;
  readonly dryRun?: boolean;
}

/** Requires exactly one of ids, a filter and --all, so that a slip does not change all dead letters. */
function checkSelection({ ids = [], all, dryRun, ...filter }: Selection): true {
  const { publisher, reason, code, unknown, since, until } = filter;
  const hasFilter = [publisher, reason, code, unknown, since, until].some((part) => part !== undefined);
  if (ids.length > 0 && (hasFilter || all === true || dryRun === true)) {
    throw new UsageError("give ids, or a filter or --all, but not both; --dry-run does not work with ids");
  }
  if (ids.length === 0 && !hasFilter && all !== true) {
    throw new UsageError("select dead letters: give ids, or a filter such as --reason, or --all");
  }
  if (hasFilter && all === true) {
    throw new UsageError("--all can't be combined with a filter");
  }
  return true;
}

export const addDeadDiscard = defineCommand({
  words: "discard [ids..]",
  describe:
    "Gives up dead letters, which are then never delivered: those with the given ids, or all that match a filter. Ids can also be of acknowledgments that are still queued",
  options: (yargs) =>
    bulkOptions(yargs.positional("ids", adResponsesPositional))
      .option("why", {
        type: "string",
        requiresArg: true,
        describe: "Why, for the audit; with ids, --reason is the same",
      })
      .check(checkDiscard),
  run: async ({ ids = [], publisher, reason, code, unknown, since, until, ...args }, session) => {
    if (ids.length > 0) {
      return discardEach(session, ids, { why: args.why ?? reason, yes: args.yes });
    }
    const filter = { publisher, reason, code, unknown, since, until };
    return discardInBulk(session, { ...args, filter, of: "dead" });
  },
});

/** With ids, --reason says why, as it did before there were discards by a filter. */
function checkDiscard({
  why,
  reason,
  ...selection
}: Selection & { readonly why?: string | undefined }): true {
  const hasIds = (selection.ids ?? []).length > 0;
  if (hasIds && why !== undefined && reason !== undefined) {
    throw new UsageError("with ids, give --why or --reason, not both");
  }
  checkSelection(hasIds ? selection : { ...selection, reason });
  const text = why ?? (hasIds ? reason : undefined);
  if (text !== undefined) {
    checkWhy(text);
  }
  return true;
}
