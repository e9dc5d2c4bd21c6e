import { replayListSchema, replayViewSchema } from "@adrelay/contract";
import { defineCommand } from "../command.ts";
import { replayPath, replayPositional } from "../positionals.ts";
import { followReplay, showReplay, showReplays } from "../replay-output.ts";
import { showCall } from "../session.ts";

export const addReplaysList = defineCommand({
  words: "list",
  describe: "The latest bulk replays, newest first",
  options: (yargs) => yargs,
  run: (_args, session) =>
    showCall(session, { path: "/replays", schema: replayListSchema }, ({ replays }) =>
      showReplays(session.terminal, replays, session.now()),
    ),
});

export const addReplaysShow = defineCommand({
  words: "show <id>",
  describe: "One bulk replay",
  options: (yargs) =>
    yargs
      .positional("id", replayPositional)
      .demandOption("id")
      .option("watch", { type: "boolean", default: false, describe: "Show the progress to the end" }),
  run: ({ id, watch }, session) =>
    watch
      ? followReplay(session, id)
      : showCall(session, { path: replayPath(id), schema: replayViewSchema }, (replay) =>
          showReplay(session.terminal, replay, session.now()),
        ),
});

export const addReplaysCancel = defineCommand({
  words: "cancel <id>",
  describe: "Ends a bulk replay; what it has put back stays on the queue",
  options: (yargs) => yargs.positional("id", replayPositional).demandOption("id"),
  run: ({ id }, session) =>
    showCall(session, { path: `${replayPath(id)}/cancel`, body: {}, schema: replayViewSchema }, (replay) =>
      showReplay(session.terminal, replay, session.now()),
    ),
});
