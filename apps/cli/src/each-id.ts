/** Changes of ad responses by their ids, with one call each. */
import type { Answer } from "./admin-client.ts";
import { EXIT, type ExitCode, type Failure } from "./exit-codes.ts";
import { type Session, showAnswer } from "./session.ts";

export interface EachId<T> {
  /** What becomes of one, such as `erased`. */
  readonly verb: string;
  /** Makes the change, and repeats it while the gateway is unavailable. */
  change(id: string): Promise<Answer<T>>;
  onDone(id: string, value: T): void;
}

/**
 * If the gateway refuses one change, the next ones still go on, and the exit code is `refused`. Any other failure ends the command,
 * which then says how far it came.
 */
export async function changeEachId<T>(
  session: Session,
  ids: readonly string[],
  { verb, change, onDone }: EachId<T>,
): Promise<ExitCode> {
  let worst: ExitCode = EXIT.done;
  let doneCount = 0;
  for (const [at, id] of ids.entries()) {
    const answer = await change(id);
    const exit = showAnswer(session, answer, (value) => onDone(id, value));
    if (answer.kind === "ok") {
      doneCount += 1;
    } else if (exit === EXIT.refused) {
      session.terminal.note(`adrelay: ${id} was not ${verb}.`);
      worst = exit;
    } else {
      noteEnd(session, { verb, doneCount, ids, at, failure: answer.failure });
      return exit;
    }
  }
  return worst;
}

interface End {
  readonly verb: string;
  readonly doneCount: number;
  readonly ids: readonly string[];
  /** The place of the id whose change failed. */
  readonly at: number;
  readonly failure: Failure;
}

/** Of a single id the failure itself says all. */
function noteEnd({ terminal }: Session, { verb, doneCount, ids, at, failure }: End): void {
  if (ids.length === 1) {
    return;
  }
  terminal.note(`${doneCount} of ${ids.length} were ${verb}.`);
  if (failure.doubt !== undefined) {
    terminal.note(`Not known: ${ids[at]}`);
  }
  const left = ids.slice(failure.doubt === undefined ? at : at + 1);
  if (left.length > 0) {
    terminal.note(`Not ${verb}: ${left.join(" ")}`);
  }
}
