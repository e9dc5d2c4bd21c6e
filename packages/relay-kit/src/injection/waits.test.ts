import type { RawReply } from "@adrelay/provider";
import { expect, test } from "vitest";
import { type Caller, GIVEN_UP, Waits } from "./waits.ts";

const LONG_MS = 10_000;
const REPLY: RawReply = {
  reply: { kind: "failed", stage: "before_send", code: "unreachable" },
  bytes: Buffer.alloc(0),
  contentType: undefined,
};

function setup() {
  const drain = new AbortController();
  const caller: Caller = { isGone: false, onGone: undefined };
  return { drain, caller, waits: new Waits(drain.signal), never: new Promise<RawReply>(() => {}) };
}

test("a reply ends the wait and leaves no listener behind", async () => {
  const { waits, caller } = setup();
  expect(await waits.untilGivenUp(Promise.resolve(REPLY), LONG_MS, caller)).toBe(REPLY);
  expect(caller.onGone).toBeUndefined();
});

test("the drain signal ends all waits, and ends later ones immediately", async () => {
  const { waits, drain, caller, never } = setup();
  const running = [1, 2].map(() => waits.untilGivenUp(never, LONG_MS, { ...caller }));
  drain.abort();
  running.push(waits.untilGivenUp(never, LONG_MS, caller));
  expect(await Promise.all(running)).toEqual([GIVEN_UP, GIVEN_UP, GIVEN_UP]);
});

test("a caller that hangs up, now or before, ends only its own wait", async () => {
  const { waits, caller, never } = setup();
  const others = waits.untilGivenUp(never, 50, { isGone: false, onGone: undefined });
  const own = waits.untilGivenUp(never, LONG_MS, caller);
  caller.onGone?.();
  expect(await own).toBe(GIVEN_UP);
  expect(await waits.untilGivenUp(never, LONG_MS, { isGone: true, onGone: undefined })).toBe(GIVEN_UP);
  expect(await Promise.race([others, "still waiting"])).toBe("still waiting");
  expect(await others).toBe(GIVEN_UP);
});

test("a drain ends all remaining waits after others have ended", async () => {
  const { waits, drain, never } = setup();
  const replies = [1, 2, 3].map(() => Promise.withResolvers<RawReply>());
  const ended = replies.map(({ promise }) =>
    waits.untilGivenUp(promise, LONG_MS, { isGone: false, onGone: undefined }),
  );
  const left = [1, 2].map(() => waits.untilGivenUp(never, LONG_MS, { isGone: false, onGone: undefined }));
  for (const { resolve } of replies) {
    resolve(REPLY);
  }
  expect(await Promise.all(ended)).toEqual([REPLY, REPLY, REPLY]);
  drain.abort();
  expect(await Promise.all(left)).toEqual([GIVEN_UP, GIVEN_UP]);
});
