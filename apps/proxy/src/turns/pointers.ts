/**
 * What a later call of a turn is found by. A pointer is an HMAC, so it tells nothing to whoever reads Redis without the key.
 *
 * The key is made from the publisher's key at its provider: all processes have it, and Redis doesn't. If that key changes,
 * turns that wait at that moment aren't found any more and end by their wait (docs/adr/0059).
 */
import { createHmac, hash } from "node:crypto";
import type { Publisher } from "@adrelay/provider";
import { hmacOf } from "@adrelay/relay-kit";

/** 132 bits: two pointers never meet. */
const POINTER_CHARS = 22;
const PURPOSE = "adrelay turn pointers";

export interface Pointers {
  /** Of calls that answer a tool call, or continue a paused step, below this user text. Keeps only a hash of the text. */
  below(userText: string): (callId: string) => string;
  /** Of a call with the same body. */
  ofBody(body: Buffer): string;
}

/** The pointers of one session of a publisher. */
export function pointersOf({ id, account }: Publisher, sessionId: string): Pointers {
  const key = keyOf(account);
  const pointer = (parts: readonly string[]) =>
    hmacOf(key, JSON.stringify([id, sessionId, ...parts])).slice(0, POINTER_CHARS);
  return {
    below: (userText) => {
      const textHash = hash("sha256", userText);
      return (callId) => pointer(["call", textHash, callId]);
    },
    ofBody: (body) => pointer(["body", hash("sha256", body)]),
  };
}

const keys = new WeakMap<Publisher["account"], string>();

/** An account's key never changes. */
function keyOf(account: Publisher["account"]): string {
  const key = keys.get(account) ?? createHmac("sha256", account.apiKey).update(PURPOSE).digest("hex");
  keys.set(account, key);
  return key;
}
