/**
 * The commands `adrelay dead …`: list, show, replay and discard dead letters. A discard also takes queued acknowledgments.
 */
import {
  type AcknowledgmentView,
  acknowledgmentDetailSchema,
  acknowledgmentPageSchema,
  acknowledgmentStateSchema,
  DISCARD_REASON_CHARS_MAX,
  PAGE_ROWS_MAX,
} from "@adrelay/contract";
import { acknowledgmentPath } from "./admin-client.ts";
import {
  adResponsePositional,
  adResponsesPositional,
  cursorOption,
  defineCommand,
  filterOptions,
  limitOption,
  rateOption,
  yesOption,
} from "./command.ts";
import { EXIT, type ExitCode, UsageError } from "./exit-codes.ts";
import { showAcknowledgment } from "./lookup-and-audit.ts";
import { replayInBulk } from "./replays.ts";
import { confirm, type Session, showAnswer, showCall } from "./session.ts";
import { describeMoment, type Terminal } from "./terminal.ts";

export const addDeadList = defineCommand({
  words: "list",
  describe: "Lists dead letters, newest first",
  options: (yargs) =>
    filterOptions(yargs)
      .option("limit", limitOption(50))
      .option("cursor", cursorOption)
      .option("all", { type: "boolean", default: false, describe: "Print all pages" }),
  run: async ({ publisher, reason, since, until, limit, cursor, all }, session) => {
    const query = { state: "dead", publisher, reason, since, until };
    const rows = all ? PAGE_ROWS_MAX : limit;
    let next = cursor ?? null;
    let shown = 0;
    do {
      const page = await loadPage(session, { ...query, limit: String(rows), cursor: next ?? undefined });
      const exit = showAnswer(session, page, ({ acknowledgments }) => {
        shown += acknowledgments.length;
        showDeadLetters(session.terminal, acknowledgments, session.now());
      });
      if (page.kind === "failed") {
        return exit;
      }
      next = page.value.next_cursor;
    } while (all && next !== null);
    if (!session.isJson) {
      noteRest(session.terminal, shown, next);
    }
    return EXIT.done;
  },
});

function loadPage({ client }: Session, query: Readonly<Record<string, string | undefined>>) {
  return client.call({ path: "/acknowledgments", query, schema: acknowledgmentPageSchema });
}

function showDeadLetters(terminal: Terminal, letters: readonly AcknowledgmentView[], nowMs: number): void {
  const rows = letters.map((letter) => [
    letter.ad_response_id,
    letter.publisher,
    letter.reason ?? "-",
    letter.last_code ?? "-",
    letter.attempts,
    describeMoment(letter.ended_at, nowMs),
  ]);
  terminal.table(["AD RESPONSE", "PUBLISHER", "REASON", "CODE", "ATTEMPTS", "DIED"], rows);
}

/** With a filter, a page can be empty although more pages follow. */
function noteRest(terminal: Terminal, shown: number, next: string | null): void {
  if (shown === 0) {
    terminal.note(next === null ? "No dead letters match." : "No dead letters on this page.");
  }
  if (next !== null) {
    terminal.note(`For the next page add --cursor ${next}, for all pages --all`);
  }
}

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
    filterOptions(yargs.positional("ids", adResponsesPositional))
      .option("all", { type: "boolean", default: false, describe: "All dead letters" })
      .option("rate", rateOption)
      .option("dry-run", { type: "boolean", default: false, describe: "Only print how many match" })
      .option("wait", {
        type: "boolean",
        default: true,
        describe: "Show the progress until the end; --no-wait starts the replay and returns",
      })
      .option("yes", yesOption)
      .check(checkSelection),
  run: ({ ids = [], publisher, reason, since, until, rate, dryRun, wait, yes }, session) =>
    ids.length > 0
      ? changeEach(session, ids, { action: "replay", body: {}, done: "queued" })
      : replayInBulk(session, { filter: { publisher, reason, since, until }, rate, dryRun, wait, yes }),
});

interface Selection {
  readonly ids?: readonly string[] | undefined;
  readonly publisher?: string | undefined;
  readonly reason?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly all?: boolean;
  readonly dryRun?: boolean;
}

/** Requires exactly one of ids, a filter and --all, so that a slip does not replay all dead letters. */
function checkSelection({ ids = [], publisher, reason, since, until, all, dryRun }: Selection): true {
  const hasFilter = [publisher, reason, since, until].some((part) => part !== undefined);
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
  words: "discard <ids..>",
  describe: "Gives up dead letters, or acknowledgments that are still queued: they are never delivered",
  options: (yargs) =>
    yargs
      .positional("ids", adResponsesPositional)
      .demandOption("ids")
      .option("reason", {
        type: "string",
        requiresArg: true,
        demandOption: true,
        describe: "Why, for the audit",
        coerce: checkReason,
      })
      .option("yes", yesOption),
  run: async ({ ids, reason, yes }, session) => {
    const question =
      ids.length === 1
        ? "Discard this acknowledgment? It will never be delivered."
        : `Discard these ${ids.length} acknowledgments? They will never be delivered.`;
    const exit = await confirm(session, yes, question);
    return exit === EXIT.done
      ? changeEach(session, ids, { action: "discard", body: { reason }, done: "discarded" })
      : exit;
  },
});

function checkReason(reason: string): string {
  const text = reason.trim();
  if (text === "" || text.length > DISCARD_REASON_CHARS_MAX) {
    throw new UsageError(`--reason must have 1 to ${DISCARD_REASON_CHARS_MAX} characters`);
  }
  return text;
}

interface Change {
  /** Last part of the call's path. */
  readonly action: "replay" | "discard";
  readonly body: Readonly<Record<string, unknown>>;
  /** The result for one acknowledgment, as the command prints it. */
  readonly done: string;
}

/**
 * Changes acknowledgments with one call each. If the gateway refuses one change, the next ones still go on, and the exit
 * code is `refused`. Any other failure ends the command.
 */
async function changeEach(
  session: Session,
  ids: readonly string[],
  { action, body, done }: Change,
): Promise<ExitCode> {
  let worst: ExitCode = EXIT.done;
  for (const id of ids) {
    const call = { path: `${acknowledgmentPath(id)}/${action}`, body, schema: acknowledgmentStateSchema };
    const exit = await showCall(session, call, () => session.terminal.print(`${id}  ${done}`));
    if (exit === EXIT.refused) {
      session.terminal.note(`adrelay: ${id} was not changed.`);
      worst = exit;
    } else if (exit !== EXIT.done) {
      return exit;
    }
  }
  return worst;
}
