import { acknowledgmentPageSchema, PAGE_ROWS_MAX } from "@adrelay/contract";
import { showDeadLetters } from "../acknowledgment-output.ts";
import { defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { cursorOption, filterOptions, limitOption } from "../positionals.ts";
import { type Session, showAnswer } from "../session.ts";
import type { Terminal } from "../terminal.ts";

export const addDeadList = defineCommand({
  words: "list",
  describe: "Dead letters, newest first",
  options: (yargs) =>
    filterOptions(yargs)
      .option("limit", limitOption(50))
      .option("cursor", cursorOption)
      .option("all", { type: "boolean", default: false, describe: "All pages, not one" }),
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

/** A page of a filter can be empty though others follow. */
function noteRest(terminal: Terminal, shown: number, next: string | null): void {
  if (shown === 0) {
    terminal.note(next === null ? "No dead letters match." : "None on this page.");
  }
  if (next !== null) {
    terminal.note(`More with --cursor ${next}, or all with --all`);
  }
}

function loadPage({ client }: Session, query: Readonly<Record<string, string | undefined>>) {
  return client.call({ path: "/acknowledgments", query, schema: acknowledgmentPageSchema });
}
