import type { AdminCall, AdminClient, Answer } from "./admin-client.ts";
import { exitOf, type Failure } from "./admin-failure.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { printable, type Terminal } from "./terminal.ts";

/** What a command works with. */
export interface Session {
  readonly client: AdminClient;
  readonly terminal: Terminal;
  /** How to call the command, for hints. */
  readonly calledAs: string;
  /** Print what the API answers, as it came. */
  readonly isJson: boolean;
  /** Fires at Ctrl-C. */
  readonly signal: AbortSignal;
  now(): number;
}

/** Calls, and shows the answer: as it came for scripts, else as `render` puts it. */
export async function showCall<T>(
  session: Session,
  call: AdminCall<T>,
  render: (value: T) => void,
): Promise<ExitCode> {
  return showAnswer(session, await session.client.call(call), render);
}

export function showAnswer<T>(session: Session, answer: Answer<T>, render: (value: T) => void): ExitCode {
  if (answer.kind === "failed") {
    return showFailure(session, answer.failure);
  }
  if (session.isJson) {
    session.terminal.print(answer.text);
  } else {
    render(answer.value);
  }
  return EXIT.done;
}

/** Says why on standard error; a script also gets the API's own words. */
export function showFailure({ terminal, isJson }: Session, failure: Failure): ExitCode {
  if (isJson && failure.text !== undefined) {
    terminal.print(failure.text);
  }
  terminal.note(`adrelay: ${printable(failure.message)}`);
  return exitOf(failure);
}
