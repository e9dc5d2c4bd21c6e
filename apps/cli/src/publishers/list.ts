/** The command `adrelay publishers list`. */
import { type PublishersView, publishersViewSchema } from "@adrelay/contract";
import { defineCommand } from "../command.ts";
import { showCall } from "../session.ts";
import { describeAge, describeMoment, type Terminal } from "../terminal.ts";

export const addPublishersList = defineCommand({
  words: "list",
  describe: "Lists the publishers that are in force, with their keys and when each was used last",
  options: (yargs) => yargs,
  run: (_args, session) =>
    showCall(session, { path: "/publishers", schema: publishersViewSchema }, (view) =>
      showPublishers(session.terminal, view, session.now()),
    ),
});

function showPublishers(terminal: Terminal, { file, publishers }: PublishersView, nowMs: number): void {
  if (file !== null) {
    const { digest, valid, loaded_at } = file;
    const state = valid ? "" : terminal.color.red(" The file that is there now is faulty or gone.");
    terminal.print(`file ${digest} (SHA-256), loaded ${describeAge(loaded_at, nowMs)}.${state}`);
    terminal.print("");
  }
  const rows = publishers.flatMap(({ id, name, provider, keys }) =>
    keys.map((key) => [
      id,
      name,
      provider,
      key.id,
      key.state,
      dayOf(key.created),
      describeMoment(key.expires, nowMs),
      describeAge(key.last_used, nowMs),
    ]),
  );
  const head = ["PUBLISHER", "NAME", "PROVIDER", "KEY", "STATE", "CREATED", "EXPIRES", "LAST USED"];
  terminal.table(head, rows);
}

function dayOf(time: string | null): string {
  return time === null ? "-" : time.slice(0, "2026-11-30".length);
}
