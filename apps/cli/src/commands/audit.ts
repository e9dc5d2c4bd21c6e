import { auditPageSchema } from "@adrelay/contract";
import { defineCommand } from "../command.ts";
import { describeMembers } from "../members.ts";
import { describeMoment } from "../moments.ts";
import { cursorOption, limitOption } from "../positionals.ts";
import { showCall } from "../session.ts";

export const addAudit = defineCommand({
  words: "audit",
  describe: "Who replayed, discarded or cancelled what, newest first",
  options: (yargs) => yargs.option("limit", limitOption(50)).option("cursor", cursorOption),
  run: ({ limit, cursor }, session) => {
    const query = { limit: String(limit), cursor };
    return showCall(session, { path: "/audit", query, schema: auditPageSchema }, (page) => {
      const rows = page.entries.map(({ at, by, action, ad_response_id, replay_id, details }) => [
        describeMoment(at, session.now()),
        by,
        action,
        ad_response_id ?? replay_id ?? "-",
        describeMembers(details),
      ]);
      if (rows.length === 0) {
        session.terminal.note("No entries.");
        return;
      }
      session.terminal.table(["AT", "BY", "ACTION", "ID", "DETAILS"], rows);
      if (page.next_cursor !== null) {
        session.terminal.note(`More with --cursor ${page.next_cursor}`);
      }
    });
  },
});
