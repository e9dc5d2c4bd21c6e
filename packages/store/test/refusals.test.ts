/** How a real Redis words its refusals of a script, and that they are recognised. Versions before 7 word them otherwise. */
import { redisErrorKind } from "@adrelay/core";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { StoreRefusalError } from "../src/redis/scripts.ts";
import { jobOf, newId, newIdIn, openTestRedis, openTestStore } from "./store-fixture.ts";

const { server, redis } = await openTestRedis();

const REFUSALS = [
  {
    word: "OOM",
    refuse: () => redis.config("SET", "maxmemory", "1"),
    relent: () => redis.config("SET", "maxmemory", "0"),
  },
  {
    word: "READONLY",
    refuse: () => redis.replicaof("127.0.0.1", 1),
    relent: () => redis.replicaof("NO", "ONE"),
  },
];

async function errorOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  );
}

test.each(REFUSALS)("a script's write that Redis refuses with $word is recognised", async (refusal) => {
  const { store, find } = openTestStore(redis);
  const request = { job: jobOf(newId()), textHash: "hash" };
  await refusal.refuse();
  try {
    const [ofScript, ofStore] = [
      await errorOf(redis.eval("return redis.call('SET', KEYS[1], 'v')", 1, "key")),
      await errorOf(store.acknowledgments.accept(request)),
    ];
    expect([ofScript, ofStore].map(String)).toEqual([
      expect.stringContaining(refusal.word),
      expect.stringContaining(refusal.word),
    ]);
    expect([ofScript, ofStore].map(redisErrorKind)).toEqual(["refuses_writes", "refuses_writes"]);
    expect(await find(request.job.adResponseId)).toBeUndefined();
  } finally {
    await refusal.relent();
  }
  expect(await store.acknowledgments.accept(request)).toMatchObject({ kind: "accepted_unknown" });
});

test("an error that a script catches and returns is recognised, too", async () => {
  await redis.config("SET", "maxmemory", "1");
  try {
    const reply: unknown = await redis.eval("return {redis.pcall('SET', KEYS[1], 'v')}", 1, "key");
    const [caught] = Array.isArray(reply) ? reply : [];
    expect(redisErrorKind(new StoreRefusalError(caught.message))).toBe("refuses_writes");
  } finally {
    await redis.config("SET", "maxmemory", "0");
  }
});

test("a full Redis books the outcome of an attempt", async () => {
  const fixture = openTestStore(redis);
  const ids = [await newIdIn(fixture, "queued"), await newIdIn(fixture, "queued")];
  await redis.config("SET", "maxmemory", "1");
  try {
    const booked = await Promise.all(
      ids.map((id, at) => fixture.settle(id, at === 0 ? "deliver" : "refuse")),
    );
    expect(booked).toEqual(["booked", "booked"]);
  } finally {
    await redis.config("SET", "maxmemory", "0");
  }
  const states = await Promise.all(ids.map(async (id) => (await fixture.find(id))?.state));
  expect(states).toEqual(["delivered", "refused"]);
});

test("a lost script, an unknown command and a forbidden one are recognised", async () => {
  await redis.call("ACL", "SETUSER", "poor", "on", "nopass", "+ping");
  const poor = new Redis(server.url, { username: "poor", password: "any", enableReadyCheck: false });
  try {
    const errors = await Promise.all([
      errorOf(redis.evalsha("0".repeat(40), 0)),
      errorOf(redis.call("NO-SUCH-COMMAND")),
      errorOf(poor.eval("return 1", 0)),
    ]);
    expect(errors.map(redisErrorKind)).toEqual(["no_script", "unknown_command", "no_permission"]);
  } finally {
    poor.disconnect();
  }
});
