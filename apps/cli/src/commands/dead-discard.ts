import { DISCARD_REASON_CHARS_MAX, acknowledgmentStateSchema } from "@adrelay/contract";
import { defineCommand } from "../command.ts";
import { EXIT, UsageError } from "../exit-codes.ts";
import { adResponsesPositional } from "../positionals.ts";
import { confirmed } from "./confirmed.ts";
import { moveEach } from "./move-each.ts";

export const addDeadDiscard = defineCommand({
  words: "discard <ids..>",
  describe: "Gives dead letters up for good: they are never delivered",
  options: (yargs) =>
    yargs
      .positional("ids", adResponsesPositional)
      .demandOption("ids")
      .option("reason", {
        type: "string",
        requiresArg: true,
        demandOption: true,
        describe: "Why, for the audit log",
        coerce: checkReason,
      })
      .option("yes", { type: "boolean", alias: "y", default: false, describe: "Don't ask" }),
  run: async ({ ids, reason, yes }, session) => {
    const what = ids.length === 1 ? "this dead letter" : `these ${ids.length} dead letters`;
    const go = await confirmed(session, yes, `Discard ${what}? What is discarded is never delivered.`);
    return go === EXIT.done
      ? moveEach(session, ids, {
          action: "discard",
          body: { reason },
          schema: acknowledgmentStateSchema,
          done: "discarded",
        })
      : go;
  },
});

function checkReason(reason: string): string {
  const text = reason.trim();
  if (text === "" || text.length > DISCARD_REASON_CHARS_MAX) {
    throw new UsageError(`--reason wants 1 to ${DISCARD_REASON_CHARS_MAX} characters`);
  }
  return text;
}
