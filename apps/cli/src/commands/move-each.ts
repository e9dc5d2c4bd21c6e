import type { z } from "zod";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { adResponsePath } from "../positionals.ts";
import { type Session, showCall } from "../session.ts";

export interface Move<T> {
  /** Last part of the call's path. */
  readonly action: "replay" | "discard";
  readonly body: Readonly<Record<string, unknown>>;
  readonly schema: z.ZodType<T>;
  /** What has become of a letter, for people. */
  readonly done: string;
}

/**
 * Moves dead letters, one call each. One that is refused doesn't hold up the next ones; when the relay can't be
 * asked at all it ends. The worst code counts.
 */
export async function moveEach<T>(
  session: Session,
  ids: readonly string[],
  { action, body, schema, done }: Move<T>,
): Promise<ExitCode> {
  let worst: ExitCode = EXIT.done;
  for (const id of ids) {
    const call = { path: `${adResponsePath(id)}/${action}`, body, schema };
    const exit = await showCall(session, call, () => session.terminal.print(`${id}  ${done}`));
    if (exit === EXIT.refused) {
      session.terminal.note(`adrelay: ${id} was left as it is.`);
      worst = exit;
    } else if (exit !== EXIT.done) {
      return exit;
    }
  }
  return worst;
}
