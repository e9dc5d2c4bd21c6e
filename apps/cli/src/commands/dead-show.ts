import { acknowledgmentDetailSchema } from "@adrelay/contract";
import { showAcknowledgment } from "../acknowledgment-output.ts";
import { defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { adResponsePath, adResponsePositional } from "../positionals.ts";
import { showAnswer } from "../session.ts";

export const addDeadShow = defineCommand({
  words: "show <id>",
  describe: "One dead letter with its attempts; fails if it is none",
  options: (yargs) => yargs.positional("id", adResponsePositional).demandOption("id"),
  run: async ({ id }, session) => {
    const answer = await session.client.call({
      path: adResponsePath(id),
      schema: acknowledgmentDetailSchema,
    });
    const exit = showAnswer(session, answer, (found) =>
      showAcknowledgment(session.terminal, found, session.now()),
    );
    if (answer.kind === "ok" && answer.value.state !== "dead") {
      session.terminal.note(`adrelay: not a dead letter: it is ${answer.value.state}`);
      return EXIT.refused;
    }
    return exit;
  },
});
