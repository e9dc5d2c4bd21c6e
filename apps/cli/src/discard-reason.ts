/** Why something is discarded, in the operator's words, for the audit. */
import { DISCARD_REASON_CHARS_MAX } from "@adrelay/contract";
import { EXIT, type ExitCode, UsageError } from "./exit-codes.ts";
import type { Session } from "./session.ts";

export function checkWhy(text: string): string {
  if (text.trim() === "" || text.trim().length > DISCARD_REASON_CHARS_MAX) {
    throw new UsageError(`--why must have 1 to ${DISCARD_REASON_CHARS_MAX} characters`);
  }
  return text;
}

/** What was given; else it asks at the terminal. Returns an exit code if that was interrupted. */
export async function askWhy(
  { terminal, signal }: Session,
  given: string | undefined,
): Promise<string | ExitCode> {
  if (given !== undefined) {
    return given;
  }
  if (!terminal.canAsk) {
    throw new UsageError('--why is missing: say why, for the audit, such as --why "the campaign has ended"');
  }
  const answer = await terminal.ask("Why? The audit keeps it:", signal);
  if (answer === undefined) {
    terminal.note("Nothing was changed.");
    return EXIT.interrupted;
  }
  return checkWhy(answer);
}
