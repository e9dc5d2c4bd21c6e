/** When callers' keys were used last, on a real Redis. Guards against a write for each request, and against lost uses. */
import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { KeyUses } from "../src/publishers/key-uses.ts";
import { openTestRedis, openTestStore } from "./store-fixture.ts";

const { redis } = await openTestRedis();
const keyOf = (name: string) => ({ digest: hash("sha256", name, "hex") });
const DAY_MS = 86_400_000;

function setup() {
  const { parts, key } = openTestStore(redis);
  return { parts, set: key("key-uses"), uses: new KeyUses(parts), another: new KeyUses(parts) };
}

async function nowMs(): Promise<number> {
  const [seconds = 0] = await redis.time();
  return Number(seconds) * 1000;
}

test("what one process has saved is loaded by another, and other keys have no use", async () => {
  const { uses, another } = setup();
  const fromMs = await nowMs();
  uses.note(keyOf("used"));
  await uses.save();
  const useOf = await another.load();
  expect(useOf(keyOf("used"))).toBeGreaterThanOrEqual(fromMs);
  expect(useOf(keyOf("unused"))).toBeUndefined();
});

test("a key is saved at most once a minute by a process", async () => {
  const { uses, set } = setup();
  uses.note(keyOf("used"));
  await uses.save();
  await redis.del(set);
  uses.note(keyOf("used"));
  uses.note(keyOf("other"));
  await uses.save();
  expect(await redis.zrange(set, "0", "-1")).toEqual([keyOf("other").digest.slice(0, 16)]);
});

test("a use that can't be saved is saved by the next call", async () => {
  const { parts, another } = setup();
  let isAway = true;
  const uses = new KeyUses({
    ...parts,
    run: (...call) => (isAway ? Promise.reject(new Error("away")) : parts.run(...call)),
  });
  uses.note(keyOf("used"));
  await expect(uses.save()).rejects.toThrow("away");
  isAway = false;
  await uses.save();
  expect((await another.load())(keyOf("used"))).toBeDefined();
});

test("a key without a use in 400 days is forgotten", async () => {
  const { uses, set } = setup();
  const now = await nowMs();
  await redis.zadd(set, now - 401 * DAY_MS, "old", now - 399 * DAY_MS, "recent");
  uses.note(keyOf("used"));
  await uses.save();
  expect(await redis.zrange(set, "0", "-1")).toEqual(["recent", keyOf("used").digest.slice(0, 16)]);
});
