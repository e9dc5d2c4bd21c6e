/** The commands `list`, `show` and `cancel`, which bulk replays and bulk discards have alike. */
import type { z } from "zod";
import { type BulkResource, cancelBulk, followBulk, showBulk } from "./bulk-changes.ts";
import { type AddTo, defineCommand } from "./command.ts";
import { showCall } from "./session.ts";
import type { Terminal } from "./terminal.ts";

/** What differs between the two. */
export interface BulkCommands<V, L> {
  readonly resource: BulkResource<V>;
  readonly listSchema: z.ZodType<L>;
  showList(terminal: Terminal, list: L, nowMs: number): void;
  /** The ends of the descriptions of `show` and `cancel`. */
  readonly about: { readonly show: string; readonly cancel: string };
}

export function defineBulkCommands<V, L>({
  resource,
  listSchema,
  showList,
  about,
}: BulkCommands<V, L>): readonly AddTo[] {
  const { noun } = resource;
  const positional = { describe: `${noun}_id`, type: "string" } as const;
  const list = defineCommand({
    words: "list",
    describe: `Lists the latest bulk ${noun}s, newest first`,
    options: (yargs) => yargs,
    run: (_args, session) =>
      showCall(session, { path: `/${noun}s`, schema: listSchema }, (found) =>
        showList(session.terminal, found, session.now()),
      ),
  });
  const show = defineCommand({
    words: "show <id>",
    describe: `Shows one bulk ${noun}${about.show}`,
    options: (yargs) =>
      yargs
        .positional("id", positional)
        .demandOption("id")
        .option("watch", { type: "boolean", default: false, describe: "Show the progress until the end" }),
    run: ({ id, watch }, session) =>
      watch ? followBulk(session, resource, id) : showBulk(session, resource, id),
  });
  const cancel = defineCommand({
    words: "cancel <id>",
    describe: `Cancels a bulk ${noun}; ${about.cancel}`,
    options: (yargs) => yargs.positional("id", positional).demandOption("id"),
    run: ({ id }, session) => cancelBulk(session, resource, id),
  });
  return [list, show, cancel];
}
