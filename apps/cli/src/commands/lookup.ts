import { acknowledgmentDetailSchema } from "@adrelay/contract";
import { showAcknowledgment } from "../acknowledgment-output.ts";
import { defineCommand } from "../command.ts";
import { adResponsePath, adResponsePositional } from "../positionals.ts";
import { showCall } from "../session.ts";

export const addLookUp = defineCommand({
  words: "lookup <id>",
  describe: "How one acknowledgment stands: state, times, attempts",
  options: (yargs) => yargs.positional("id", adResponsePositional).demandOption("id"),
  run: ({ id }, session) =>
    showCall(session, { path: adResponsePath(id), schema: acknowledgmentDetailSchema }, (found) =>
      showAcknowledgment(session.terminal, found, session.now()),
    ),
});
