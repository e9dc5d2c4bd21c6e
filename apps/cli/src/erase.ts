/** The command `adrelay erase`: what a user wrote leaves Redis. Entries and counts stay. */
import { type ErasureView, erasureSchema } from "@adrelay/contract";
import { adResponsesPositional, defineCommand } from "./command.ts";
import { askWhy, checkWhy } from "./discard-reason.ts";
import { changeEachId } from "./each-id.ts";
import { EXIT, type ExitCode, UsageError } from "./exit-codes.ts";
import { callPatiently } from "./patient-call.ts";
import { yesOption } from "./selection-options.ts";
import { confirm, type Session, showAnswer } from "./session.ts";

interface Erasure {
  readonly reason: string;
  readonly rewrite: boolean;
}

export const addErase = defineCommand({
  words: "erase [ids..]",
  describe:
    "Erases what users wrote, of the given ids or of a session, in any state. What isn't delivered then never is",
  options: (yargs) =>
    yargs
      .positional("ids", adResponsesPositional)
      .option("session", {
        type: "string",
        requiresArg: true,
        describe: "All of this session_id, instead of ids",
      })
      .option("publisher", {
        type: "string",
        requiresArg: true,
        describe: "The session's publisher; needed if the relay has several",
      })
      .option("why", { type: "string", requiresArg: true, describe: "Why, for the audit" })
      .option("rewrite", {
        type: "boolean",
        default: false,
        describe: "Then have Redis rewrite its files, so that the texts leave its disk, too",
      })
      .option("yes", yesOption)
      .check(checkErase),
  run: async ({ ids = [], session: sessionId, publisher, why, rewrite, yes }, session) => {
    const reason = await askWhy(session, why);
    if (typeof reason === "number") {
      return reason;
    }
    const what = sessionId === undefined ? `${ids.length} ad responses` : "all ad responses of this session";
    const exit = await confirm(
      session,
      yes,
      `Erase the texts of ${what}? What isn't delivered then never is.`,
    );
    if (exit !== EXIT.done) {
      return exit;
    }
    const erasure = { reason: reason.trim(), rewrite };
    return sessionId === undefined
      ? eraseEach(session, ids, erasure)
      : eraseSession(session, { session_id: sessionId, publisher }, erasure);
  },
});

function checkErase(args: {
  readonly ids?: readonly string[] | undefined;
  readonly session?: string | undefined;
  readonly publisher?: string | undefined;
  readonly why?: string | undefined;
}): true {
  const hasIds = (args.ids ?? []).length > 0;
  if (hasIds === (args.session !== undefined)) {
    throw new UsageError("give either ids or --session");
  }
  if (hasIds && args.publisher !== undefined) {
    throw new UsageError("--publisher belongs to --session");
  }
  if (args.why !== undefined) {
    checkWhy(args.why);
  }
  return true;
}

/**
 * One call for each. An unknown id doesn't end the command. Each asks for the rewrite, because a later one may fail. The workers
 * rewrite the files once or twice for all of them.
 */
function eraseEach(session: Session, ids: readonly string[], erasure: Erasure): Promise<ExitCode> {
  return changeEachId(session, ids, {
    verb: "erased",
    change: (id) =>
      callPatiently(session, {
        path: "/erasures",
        body: { ...erasure, ad_response_id: id },
        change: { look: `lookup ${id}` },
        schema: erasureSchema,
      }),
    onDone: (id, view) => session.terminal.print(`${id}  ${describeOne(view)}`),
  });
}

function describeOne({ state, erased, without_text, under_way }: ErasureView): string {
  if (without_text > 0) {
    return `${state}: there is no text. If an acknowledgment comes, it is accepted`;
  }
  const done = erased > 0 ? "erased" : "was erased before";
  return under_way > 0
    ? `${done}, ${state}. An attempt is under way: if the provider takes it, it becomes delivered`
    : `${done}, ${state}`;
}

/**
 * One call for each step of the search. What was erased stays so, whatever happens to the next call. Redis may restart during a long
 * search, so a step is repeated for a while.
 */
async function eraseSession(
  session: Session,
  which: { readonly session_id: string; readonly publisher: string | undefined },
  erasure: Erasure,
): Promise<ExitCode> {
  const { terminal, isJson } = session;
  const sum = { erased: 0, withoutText: 0, underWay: 0 };
  let cursor: string | undefined;
  do {
    const step = {
      path: "/erasures",
      body: { ...which, ...erasure, cursor },
      change: { look: "audit" },
      schema: erasureSchema,
    };
    const answer = await callPatiently(session, step);
    const exit = showAnswer(session, answer, () => {});
    if (answer.kind === "failed") {
      if (answer.failure.kind !== "refused" && answer.failure.kind !== "denied") {
        terminal.note(`${sum.erased} were erased, and stay so. To erase the rest, run the command again.`);
      }
      return exit;
    }
    sum.erased += answer.value.erased;
    sum.withoutText += answer.value.without_text;
    sum.underWay += answer.value.under_way;
    cursor = answer.value.next_cursor ?? undefined;
  } while (cursor !== undefined);
  if (!isJson) {
    terminal.print(`${sum.erased} erased, ${sum.withoutText} without a text, ${sum.underWay} under way`);
  }
  if (sum.withoutText > 0) {
    terminal.note(
      "Acknowledgments of those without a text are still accepted. Run the command again once they came.",
    );
  }
  return EXIT.done;
}
