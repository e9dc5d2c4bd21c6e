/** The command `adrelay publishers adopt`: another publisher takes over what one left that is gone from the settings. */
import { type AdoptionView, adoptionSchema } from "@adrelay/contract";
import { defineCommand } from "../command.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { yesOption } from "../selection-options.ts";
import { confirm, type Session, showAnswer } from "../session.ts";

export const addPublishersAdopt = defineCommand({
  words: "adopt <gone> <by>",
  describe: "Gives the awaiting, queued and dead ad responses of a publisher that is gone to another one",
  options: (yargs) =>
    yargs
      .positional("gone", { type: "string", describe: "The publisher that is no longer in the settings" })
      .positional("by", { type: "string", describe: "The publisher that gets them" })
      .demandOption(["gone", "by"])
      .option("yes", yesOption),
  run: async ({ gone, by, yes }, session) => {
    const question = `Give all ad responses of ${gone} to ${by}? They will be delivered with the account of ${by}.`;
    const exit = await confirm(session, yes, question);
    return exit === EXIT.done ? adoptAll(session, gone, by) : exit;
  },
});

/** One call for each batch. What was adopted stays so, whatever happens to the next call. */
async function adoptAll(session: Session, gone: string, by: string): Promise<ExitCode> {
  const sum = { queued: 0, dead: 0, awaiting: 0, underWay: 0 };
  let cursor: string | undefined;
  do {
    const answer = await session.client.call({
      path: `/publishers/${encodeURIComponent(gone)}/adopt`,
      body: { to: by, cursor },
      change: { look: "status" },
      schema: adoptionSchema,
    });
    const exit = showAnswer(session, answer, () => {});
    if (answer.kind === "failed") {
      // The gateway refuses the same call again.
      if (answer.failure.kind !== "refused" && answer.failure.kind !== "denied") {
        session.terminal.note("What was adopted so far stays so. To adopt the rest, run the command again.");
      }
      return exit;
    }
    add(sum, answer.value);
    cursor = answer.value.next_cursor ?? undefined;
  } while (cursor !== undefined);
  if (!session.isJson) {
    const { queued, dead, awaiting } = sum;
    session.terminal.print(
      `${by} has adopted ${queued} queued, ${dead} dead and ${awaiting} awaiting from ${gone}`,
    );
  }
  if (sum.underWay > 0) {
    session.terminal.note(`${sum.underWay} are being attempted now. Run the command again in a few seconds.`);
    return EXIT.refused;
  }
  return EXIT.done;
}

function add(
  sum: { queued: number; dead: number; awaiting: number; underWay: number },
  { adopted, under_way }: AdoptionView,
): void {
  sum.queued += adopted.queued;
  sum.dead += adopted.dead;
  sum.awaiting += adopted.awaiting;
  sum.underWay += under_way;
}
