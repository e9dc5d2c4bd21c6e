import { replayDryRunSchema, acknowledgmentStateSchema, REPLAY_RATE_DEFAULT, replayViewSchema } from "@adrelay/contract";
import { defineCommand } from "../command.ts";
import { EXIT, type ExitCode, UsageError } from "../exit-codes.ts";
import { adResponsesPositional, filterOptions, rateOption } from "../positionals.ts";
import { followReplay, showReplay } from "../replay-output.ts";
import { type Session, showAnswer, showFailure } from "../session.ts";
import { confirmed } from "./confirmed.ts";
import { moveEach } from "./move-each.ts";

export const addDeadReplay = defineCommand({
  words: "replay [ids..]",
  describe: "Puts dead letters back on the queue: those named, or all that a filter matches",
  options: (yargs) =>
    filterOptions(yargs.positional("ids", adResponsesPositional))
      .option("all", { type: "boolean", default: false, describe: "All dead letters there are" })
      .option("rate", rateOption)
      .option("dry-run", { type: "boolean", default: false, describe: "Only tell how many match" })
      .option("wait", {
        type: "boolean",
        default: true,
        describe: "Show the progress to the end; --no-wait starts it and leaves",
      })
      .option("yes", { type: "boolean", alias: "y", default: false, describe: "Don't ask" })
      .check(checkChoice),
  run: ({ ids = [], publisher, reason, since, until, rate, dryRun, wait, yes }, session) => {
    if (ids.length > 0) {
      return moveEach(session, ids, { action: "replay", body: {}, schema: acknowledgmentStateSchema, done: "queued" });
    }
    return replayMany(session, { filter: { publisher, reason, since, until }, rate, dryRun, wait, yes });
  },
});

interface Choice {
  readonly ids?: readonly string[] | undefined;
  readonly publisher?: string | undefined;
  readonly reason?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly all?: boolean;
  readonly dryRun?: boolean;
}

/** Ids, a filter or --all: one of them, and no bulk replay by a slip. */
function checkChoice({ ids = [], publisher, reason, since, until, all, dryRun }: Choice): true {
  const hasFilter = [publisher, reason, since, until].some((part) => part !== undefined);
  if (ids.length > 0 && (hasFilter || all === true || dryRun === true)) {
    throw new UsageError("name ids, or a filter or --all (--dry-run is for those), not both");
  }
  if (ids.length === 0 && !hasFilter && all !== true) {
    throw new UsageError("which ones? Name ids, or a filter such as --reason, or --all");
  }
  if (hasFilter && all === true) {
    throw new UsageError("--all takes no filter");
  }
  return true;
}

interface BulkReplay {
  readonly filter: Readonly<Record<"publisher" | "reason" | "since" | "until", string | undefined>>;
  readonly rate: number | undefined;
  readonly dryRun: boolean;
  readonly wait: boolean;
  readonly yes: boolean;
}

async function replayMany(session: Session, bulk: BulkReplay): Promise<ExitCode> {
  const body = { ...bulk.filter, rate_per_second: bulk.rate };
  const tried = await session.client.call({
    path: "/replays",
    body: { ...body, dry_run: true },
    schema: replayDryRunSchema,
  });
  const matched = tried.kind === "ok" ? tried.value.matched : 0;
  if (bulk.dryRun || matched === 0) {
    return showAnswer(session, tried, () => session.terminal.print(`${matched} dead letters match`));
  }
  const rate = bulk.rate ?? REPLAY_RATE_DEFAULT;
  const go = await confirmed(session, bulk.yes, `Replay ${matched} dead letters, ${rate} a second?`);
  return go === EXIT.done ? startReplay(session, body, bulk.wait) : go;
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
