/** Calls that outlast a restart of the gateway or of Redis. */
import { setTimeout as wait } from "node:timers/promises";
import type { AdminCall, Answer } from "./admin-client.ts";
import type { Session } from "./session.ts";

/** A command goes on while the gateway is unavailable for at most this long, since it may be restarting. */
export const UNAVAILABLE_MAX_MS = 30_000;
const REPEAT_MS = 500;

/** Repeats a call while the gateway is unavailable. Only for calls that are safe to repeat. */
export async function callPatiently<T>(
  { client, terminal, signal }: Session,
  call: AdminCall<T>,
): Promise<Answer<T>> {
  const endMs = performance.now() + UNAVAILABLE_MAX_MS;
  for (let attempt = 1; ; attempt += 1) {
    const answer = await client.call(call);
    if (answer.kind === "ok" || answer.failure.kind !== "unavailable" || performance.now() > endMs) {
      return answer;
    }
    if (attempt === 1) {
      terminal.note(`The gateway is unavailable. Trying again for ${UNAVAILABLE_MAX_MS / 1000} s.`);
    }
    // An interruption ends the wait early. The next call then fails as interrupted.
    await wait(REPEAT_MS, undefined, { signal }).catch(() => {});
  }
}
