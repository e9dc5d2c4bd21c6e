/** The command `adrelay publishers adopt`: another publisher takes over what one left that is gone from the settings. */
import { type AdoptionView, adoptionSchema, type Stats, statsSchema } from "@adrelay/contract";
import { defineCommand } from "../command.ts";
import { EXIT, type ExitCode, type Failure } from "../exit-codes.ts";
import { callPatiently } from "../patient-call.ts";
import { yesOption } from "../selection-options.ts";
import { confirm, type Session, showAnswer, showFailure } from "../session.ts";

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
    return exit === EXIT.done ? adoptAll(session, { gone, by }) : exit;
  },
});

interface Parties {
  readonly gone: string;
  readonly by: string;
}

/** What all batches so far have done. */
interface Sum {
  batches: number;
  queued: number;
  dead: number;
  awaiting: number;
  underWay: number;
}

/** What changed its place during a round is met in the next one. */
const ROUNDS_MAX = 3;

/** Goes through all ad responses, and again if some were missed. */
async function adoptAll(session: Session, { gone, by }: Parties): Promise<ExitCode> {
  const { terminal, isJson } = session;
  const sum: Sum = { batches: 0, queued: 0, dead: 0, awaiting: 0, underWay: 0 };
  let left = 0;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const stopped = await adoptOnce(session, { gone, by }, sum);
    if (stopped !== undefined) {
      return stopped;
    }
    if (sum.underWay > 0) {
      break;
    }
    const stats = await callPatiently(session, { path: "/stats", schema: statsSchema });
    if (stats.kind === "failed") {
      return stopHalfway(session, stats.failure, sum);
    }
    left = countLeft(stats.value, gone);
    if (left === 0) {
      break;
    }
  }
  if (!isJson) {
    const { queued, dead, awaiting } = sum;
    terminal.print(`${by} has adopted ${queued} queued, ${dead} dead and ${awaiting} awaiting from ${gone}`);
  }
  if (sum.underWay > 0) {
    terminal.note(`${sum.underWay} are being attempted now. Run the command again in a few seconds.`);
    return EXIT.refused;
  }
  if (left > 0) {
    terminal.note(`${gone} still has ${left}, which changed meanwhile. Run the command again.`);
    return EXIT.refused;
  }
  return EXIT.done;
}

/** One call for each batch. A batch is safe to repeat. Resolves with the exit code if one failed. */
async function adoptOnce(session: Session, { gone, by }: Parties, sum: Sum): Promise<ExitCode | undefined> {
  let cursor: string | undefined;
  do {
    const answer = await callPatiently(session, {
      path: `/publishers/${encodeURIComponent(gone)}/adopt`,
      body: { to: by, cursor },
      change: { look: "status" },
      schema: adoptionSchema,
    });
    if (answer.kind === "failed") {
      return stopHalfway(session, answer.failure, sum);
    }
    showAnswer(session, answer, () => {});
    add(sum, answer.value);
    cursor = answer.value.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return undefined;
}

/** What was adopted stays so, whatever happens to the next call. */
function stopHalfway(session: Session, failure: Failure, { batches }: Sum): ExitCode {
  const exit = showFailure(session, failure);
  if (failure.kind !== "refused" && failure.kind !== "denied") {
    session.terminal.note("What was adopted so far stays so. To adopt the rest, run the command again.");
  } else if (batches > 0) {
    // The gateway refuses the same call again.
    session.terminal.note("What was adopted so far stays so.");
  }
  return exit === EXIT.usage && batches > 0 ? EXIT.refused : exit;
}

function countLeft({ gone_publishers }: Stats, gone: string): number {
  const left = gone_publishers.find(({ publisher }) => publisher === gone);
  return left === undefined ? 0 : left.queued + left.dead + left.awaiting;
}

function add(sum: Sum, { adopted, under_way }: AdoptionView): void {
  sum.batches += 1;
  sum.queued += adopted.queued;
  sum.dead += adopted.dead;
  sum.awaiting += adopted.awaiting;
  sum.underWay += under_way;
}
