/** Calls that outlast a restart of the gateway or of Redis. */
import { setTimeout as wait } from "node:timers/promises";
import type { AdminCall, Answer } from "./admin-client.ts";
import { type Failure, joinSentences } from "./exit-codes.ts";
import type { Session } from "./session.ts";

const REPEAT_MS = 500;

/**
 * Repeats a call while the gateway is unavailable, for the session's patience at most. Only for calls that are safe to repeat. Before the
 * gateway has answered any call of the command, nothing is repeated but what it says itself to try again: the address may be wrong.
 *
 * A failure has a `doubt` if one of the calls may have made the change.
 */
export async function callPatiently<T>(
  { client, terminal, patienceMs, signal }: Session,
  call: AdminCall<T>,
): Promise<Answer<T>> {
  const endMs = performance.now() + patienceMs;
  let doubt: string | undefined;
  for (let attempt = 1; ; attempt += 1) {
    const answer = await client.call(call);
    if (answer.kind === "ok") {
      return answer;
    }
    const { failure } = answer;
    const { kind, retryAfterMs } = failure;
    const waitMs = Math.max(REPEAT_MS, retryAfterMs ?? 0);
    const isRepeated = kind === "unavailable" && (retryAfterMs !== undefined || client.hasAnswered);
    if (!isRepeated || performance.now() + waitMs > endMs) {
      return { kind: "failed", failure: withDoubt(failure, doubt) };
    }
    doubt ??= failure.doubt;
    if (attempt === 1) {
      terminal.note(`The gateway is unavailable. Trying again for ${patienceMs / 1000} s.`);
    }
    // An interruption ends the wait early. The next call then fails as interrupted.
    await wait(waitMs, undefined, { signal }).catch(() => {});
  }
}

/** A refusal is told as it is: whoever repeats a change that can be refused looks first whether it was made. */
function withDoubt(failure: Failure, doubt: string | undefined): Failure {
  if (failure.doubt !== undefined || doubt === undefined) {
    return failure;
  }
  const message = failure.kind === "refused" ? failure.message : joinSentences(failure.message, doubt);
  return { ...failure, message, doubt };
}
