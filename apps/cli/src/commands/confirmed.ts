import { EXIT, type ExitCode } from "../exit-codes.ts";
import type { Session } from "../session.ts";

/** `done` if the operator wants it; else the exit code of not doing it. Nothing has been changed by then. */
export async function confirmed(
  { terminal, signal }: Session,
  isYes: boolean,
  question: string,
): Promise<ExitCode> {
  if (isYes) {
    return EXIT.done;
  }
  if (!terminal.canAsk) {
    terminal.note("adrelay: there is nobody to ask: add --yes if you mean it.");
    return EXIT.usage;
  }
  const answer = await terminal.confirm(question, signal);
  if (answer !== "yes") {
    terminal.note("Nothing was changed.");
  }
  return { yes: EXIT.done, no: EXIT.refused, interrupted: EXIT.interrupted }[answer];
}
