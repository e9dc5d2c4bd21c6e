/** The commands that list acknowledgments: `adrelay dead list` and `adrelay queued list`. */
import { type AcknowledgmentView, acknowledgmentPageSchema, PAGE_ROWS_MAX } from "@adrelay/contract";
import type { Argv } from "yargs";
import { z } from "zod";
import type { Answer } from "./admin-client.ts";
import { defineCommand } from "./command.ts";
import { EXIT, type ExitCode, UsageError } from "./exit-codes.ts";
import {
  cursorOption,
  type DeadFilterArgs,
  filterOptions,
  limitOption,
  queryOf,
  queuedOptions,
} from "./selection-options.ts";
import { type Session, showAnswer, showFailure } from "./session.ts";
import { describeMoment } from "./terminal.ts";

export const addDeadList = defineCommand({
  words: "list",
  describe: "Lists dead letters, newest first",
  options: (yargs) =>
    pageOptions(filterOptions(yargs))
      .option("count", {
        type: "boolean",
        default: false,
        describe: "Print how many there are, by publisher, reason and code",
      })
      .check(checkCount),
  run: async ({ publisher, reason, code, unknown, since, until, count, ...paging }, session) => {
    const filter = { publisher, reason, code, unknown, since, until };
    if (count) {
      return countDead(session, filter);
    }
    const { exit, shown, next } = await showPages(session, DEAD, { filter, ...paging });
    if (exit === EXIT.done && shown === 0 && next === null) {
      await noteCodes(session, filter);
    }
    return exit;
  },
});

export const addQueuedList = defineCommand({
  words: "list",
  describe: "Lists queued acknowledgments, which are still being delivered, newest first",
  options: (yargs) => pageOptions(queuedOptions(yargs)),
  run: async ({ publisher, unknown, since, until, ...paging }, session) => {
    const filter = { publisher, unknown, since, until };
    const { exit } = await showPages(session, QUEUED, { filter, ...paging });
    return exit;
  },
});

function pageOptions<A>(yargs: Argv<A>) {
  return yargs
    .option("limit", limitOption(50))
    .option("cursor", cursorOption)
    .option("all", { type: "boolean", default: false, describe: "Print all pages" });
}

/** The numbers are the command's own, so they are no answer of the API. */
function checkCount({
  count,
  json,
  cursor,
}: {
  readonly count: boolean;
  readonly json?: unknown;
  readonly cursor?: string | undefined;
}): true {
  if (count && (json === true || cursor !== undefined)) {
    throw new UsageError("--count works neither with --json nor with --cursor");
  }
  return true;
}

/** Reads all pages, and prints a row for each kind, the most frequent first. */
async function countDead(session: Session, filter: DeadFilterArgs): Promise<ExitCode> {
  const counts = new Map<string, number>();
  let next: string | null = null;
  do {
    const page: Answer<Page> = await loadPage(session, {
      state: DEAD.state,
      ...queryOf(filter),
      limit: String(PAGE_ROWS_MAX),
      cursor: next ?? undefined,
    });
    if (page.kind === "failed") {
      return showFailure(session, page.failure);
    }
    for (const one of page.value.acknowledgments) {
      const kind = JSON.stringify([one.publisher, one.reason ?? "-", one.provider_error ?? "-"]);
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
    next = page.value.next_cursor;
  } while (next !== null);
  const rows = [...counts].toSorted(([, a], [, b]) => b - a);
  session.terminal.table(
    ["PUBLISHER", "REASON", "CODE", "COUNT"],
    rows.map(([kind, count]) => [...kindSchema.parse(JSON.parse(kind)), count]),
  );
  if (rows.length === 0) {
    session.terminal.note("No dead letters match.");
  }
  return EXIT.done;
}

const kindSchema = z.tuple([z.string(), z.string(), z.string()]);

type Page = z.infer<typeof acknowledgmentPageSchema>;

interface Listing {
  readonly state: "dead" | "queued";
  readonly things: string;
  readonly titles: readonly string[];
  row(one: AcknowledgmentView, nowMs: number): (string | number)[];
}

const DEAD: Listing = {
  state: "dead",
  things: "dead letters",
  titles: ["AD RESPONSE", "PUBLISHER", "REASON", "CODE", "ATTEMPTS", "DIED"],
  row: (one, nowMs) => [
    one.ad_response_id,
    one.publisher,
    describeReason(one),
    one.provider_error ?? "-",
    one.attempts,
    describeMoment(one.ended_at, nowMs),
  ],
};

const QUEUED: Listing = {
  state: "queued",
  things: "queued acknowledgments",
  titles: [
    "AD RESPONSE",
    "PUBLISHER",
    "LAST ANSWER",
    "CODE",
    "ATTEMPTS",
    "NEXT ATTEMPT",
    "WAITS FOR",
    "QUEUED",
  ],
  row: (one, nowMs) => [
    one.ad_response_id,
    one.publisher,
    one.last_code ?? "-",
    one.provider_error ?? "-",
    one.attempts,
    describeMoment(one.next_attempt_at, nowMs),
    describeWait(one),
    describeMoment(one.queued_at, nowMs),
  ],
};

/** A queued one that waits for neither has its turn at its next attempt. */
function describeWait({ waits_for, circuit_reason }: AcknowledgmentView): string {
  return circuit_reason === null ? (waits_for ?? "-") : `${waits_for} (${circuit_reason})`;
}

/** The last answer is told only if the reason doesn't say it, such as `exhausted (http_503)`. */
function describeReason({ reason, last_code: last }: AcknowledgmentView): string {
  return last === null || last === reason ? (reason ?? "-") : `${reason} (${last})`;
}

interface Paging {
  readonly filter: DeadFilterArgs;
  readonly limit: number;
  readonly cursor: string | undefined;
  readonly all: boolean;
}

interface Shown {
  readonly exit: ExitCode;
  readonly shown: number;
  readonly next: string | null;
}

/** Shows one page, or all pages. */
async function showPages(
  session: Session,
  listing: Listing,
  { filter, limit, cursor, all }: Paging,
): Promise<Shown> {
  const query = { state: listing.state, ...queryOf(filter), limit: String(all ? PAGE_ROWS_MAX : limit) };
  let next = cursor ?? null;
  let shown = 0;
  do {
    const page = await loadPage(session, { ...query, cursor: next ?? undefined });
    const exit = showAnswer(session, page, ({ acknowledgments }) => {
      shown += acknowledgments.length;
      session.terminal.table(
        listing.titles,
        acknowledgments.map((one) => listing.row(one, session.now())),
      );
    });
    if (page.kind === "failed") {
      return { exit, shown, next };
    }
    next = page.value.next_cursor;
  } while (all && next !== null);
  if (!session.isJson) {
    noteRest(session, listing, { shown, next });
  }
  return { exit: EXIT.done, shown, next };
}

function loadPage({ client }: Session, query: Readonly<Record<string, string | undefined>>) {
  return client.call({ path: "/acknowledgments", query, schema: acknowledgmentPageSchema });
}

/** With a filter, a page can be empty although more pages follow. */
function noteRest({ terminal }: Session, { things }: Listing, { shown, next }: Omit<Shown, "exit">): void {
  if (shown === 0) {
    terminal.note(next === null ? `No ${things} match.` : `No ${things} on this page.`);
  }
  if (next !== null) {
    terminal.note(`For the next page add --cursor ${next}, for all pages --all`);
  }
}

/** How many of the latest dead letters are asked for their codes. */
const CODES_OF_LATEST = 100;

/** If nothing matches a filter with a code, names the codes that there are: the code may be misspelt. */
export async function noteCodes(session: Session, { code, ...filter }: DeadFilterArgs): Promise<void> {
  if (code === undefined || session.isJson) {
    return;
  }
  const page = await loadPage(session, { state: "dead", ...queryOf(filter), limit: String(CODES_OF_LATEST) });
  const letters = page.kind === "ok" ? page.value.acknowledgments : [];
  const codes = [...new Set(letters.flatMap(({ provider_error: own }) => own ?? []))];
  if (codes.length > 0) {
    session.terminal.note(`The latest dead letters have the codes ${codes.toSorted().join(", ")}.`);
  }
}
