/**
 * How many bytes each publisher's acknowledgments take: the counters against the entries, the quotas that intake checks, the
 * room that is kept, and the recount.
 */
import { type AdResponseId, publisherIdSchema } from "@adrelay/contract";
import { ENTRY_EVENTS } from "@adrelay/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { type IntakeRules, NO_LIMITS, type StoredQuota } from "../src/index.ts";
import { planRoom } from "../src/intake/room.ts";
import { Recount } from "../src/maintenance/recount.ts";
import { idOf } from "../src/redis/keys.ts";
import {
  countEntryBytes,
  fire,
  jobOf,
  LONG_MS,
  newId,
  openTestRedis,
  openTestStore,
  publisher,
  usedBytes,
} from "./store-fixture.ts";

const { redis } = await openTestRedis();
const other = publisherIdSchema.parse("other");

const MIB = 1024 * 1024;
/** Besides its job's data. */
const OVERHEAD_BYTES = 1024;

type Limits = Partial<Record<StoredQuota, number>>;

function setup(limits: Limits = {}, of = publisher) {
  const rules: IntakeRules = { acceptsUnknown: true, limits: { ...NO_LIMITS, ...limits } };
  const open: IntakeRules = { acceptsUnknown: true, limits: NO_LIMITS };
  const fixture = openTestStore(redis, { intakeRules: (id) => (id === of ? rules : open) });
  const accept = (id: AdResponseId, bodyBytes = 1000, owner = publisher) =>
    fixture.acknowledgments.accept({
      job: { ...jobOf(id), publisher: owner, body: "x".repeat(bodyBytes) },
      textHash: "hash",
    });
  const newKnown = async (owner = publisher) => {
    const id = newId();
    await fixture.injections.record({ id, publisher: owner, outcome: "ok", deadlineMs: LONG_MS });
    return id;
  };
  const recount = async () => {
    const { run, keys, queue } = fixture.parts;
    const rounds = new Recount({ run, keys, queue });
    const ended = () => redis.hget(fixture.key("gauges:recount"), "running");
    do {
      await rounds.runRound(0);
    } while ((await ended()) !== "0");
  };
  return { ...fixture, accept, newKnown, recount, used: () => usedBytes(fixture) };
}

test("the bytes are counted exactly after any walk with recounts between", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(4), fc.constantFrom(...ENTRY_EVENTS, "recount" as const, "step" as const)), {
        maxLength: 60,
      }),
      async (steps) => {
        const fixture = setup();
        const ids = Array.from({ length: 5 }, () => newId());
        for (const [at, event] of steps) {
          if (event === "recount") {
            await fixture.recount();
          } else if (event === "step") {
            const { run, keys } = fixture.parts;
            await run("maintenance/recount", {
              keys: keys.forEntry(""),
              args: [1, 0, keys.entryPrefix, 0, "", ""],
            });
          } else {
            await fire(fixture, ids[at] ?? newId(), event);
          }
          expect(await fixture.used()).toEqual(await countEntryBytes(redis, fixture));
        }
      },
    ),
    { numRuns: 15 },
  );
});

test("an acknowledgment counts with its job's data and an overhead, by what is known of it", async () => {
  const { accept, newKnown, settle, used, parts } = setup();
  const [unknown, known] = [newId(), await newKnown()];
  await accept(unknown);
  await accept(known);
  const data = await redis.hget(parts.queue.payloadKey(known), "data");
  const bytes = Buffer.byteLength(data ?? "") + OVERHEAD_BYTES;
  expect(await used()).toEqual({ "acme|queued_bytes": bytes, "acme|unknown_bytes": bytes });
  await settle(known, "die");
  await settle(unknown, "die");
  expect(await used()).toEqual({ "acme|dead_bytes": bytes, "acme|unknown_bytes": bytes });
  await settle(known, "deliver");
  await settle(unknown, "refuse");
  expect(await used()).toEqual({});
});

test("unknown ids over their quota are refused, and known ones still go in", async () => {
  const { accept, newKnown, used } = setup({ unknown_bytes: 5000 });
  expect((await accept(newId())).kind).toBe("accepted_unknown");
  expect((await accept(newId())).kind).toBe("accepted_unknown");
  const usedBytes = (await used())["acme|unknown_bytes"];
  expect(await accept(newId())).toEqual({
    kind: "over_quota",
    quota: "unknown_bytes",
    limitBytes: 5000,
    usedBytes,
  });
  expect((await accept(await newKnown(), 100_000)).kind).toBe("accepted");
});

test("a quota of one publisher refuses no other publisher", async () => {
  const { accept, newKnown } = setup({ unknown_bytes: 0, queued_bytes: 0 });
  await accept(newId());
  await accept(await newKnown());
  expect((await accept(await newKnown())).kind).toBe("over_quota");
  expect((await accept(newId(), 1000, other)).kind).toBe("accepted_unknown");
  expect((await accept(await newKnown(other), 1000, other)).kind).toBe("accepted");
});

test("many at once of two gateways take exactly what the quota leaves", async () => {
  const fixture = setup({ unknown_bytes: 25_000 });
  const gateway = openTestStore(redis, {
    partition: fixture.partition,
    intakeRules: () => ({ acceptsUnknown: true, limits: { ...NO_LIMITS, unknown_bytes: 25_000 } }),
  });
  const each = (at: number) => {
    const job = { ...jobOf(newId()), body: "x".repeat(1000) };
    const { acknowledgments } = at % 2 === 0 ? fixture : gateway;
    return acknowledgments.accept({ job, textHash: "hash" });
  };
  const results = await Promise.all(Array.from({ length: 60 }, (_, at) => each(at)));
  const accepted = results.filter(({ kind }) => kind === "accepted_unknown").length;
  const bytes = (await fixture.used())["acme|unknown_bytes"] ?? 0;
  expect(accepted).toBe(Math.floor(25_000 / (bytes / accepted)));
  expect(bytes).toBeLessThanOrEqual(25_000);
});

test("too many dead letters are kept, and refuse what is new", async () => {
  const { accept, newKnown, settle, find, deadLetters } = setup({ dead_bytes: 3000 });
  const ids = [await newKnown(), await newKnown()];
  for (const id of ids) {
    await accept(id);
    await settle(id, "die");
  }
  expect(await Promise.all(ids.map(async (id) => (await find(id))?.state))).toEqual(["dead", "dead"]);
  expect(await accept(await newKnown())).toMatchObject({ kind: "over_quota", quota: "dead_bytes" });
  const [first] = ids;
  await (first && deadLetters.discard(first, "alice", "gone stale"));
  expect((await accept(await newKnown())).kind).toBe("accepted");
});

test("a large text over the quota isn't sent to Redis", async () => {
  const { accept, newKnown } = setup({ unknown_bytes: 300_000 });
  expect((await accept(newId(), 200_000)).kind).toBe("accepted_unknown");
  const received = async () => Number(/^total_net_input_bytes:(\d+)/m.exec(await redis.info("stats"))?.[1]);
  const before = await received();
  expect((await accept(newId(), 200_000)).kind).toBe("over_quota");
  expect((await received()) - before).toBeLessThan(20_000);
  expect((await accept(await newKnown(), 200_000)).kind).toBe("accepted");
});

test("a repeat needs no room", async () => {
  const { accept, newKnown } = setup({ queued_bytes: 1 });
  const id = await newKnown();
  expect((await accept(id)).kind).toBe("accepted");
  expect((await accept(id)).kind).toBe("repeat");
});

test("an acknowledgment that is larger than the quota goes in alone", async () => {
  const { accept, newKnown, settle } = setup({ queued_bytes: 1 });
  const id = await newKnown();
  expect((await accept(id)).kind).toBe("accepted");
  expect((await accept(await newKnown())).kind).toBe("over_quota");
  await settle(id, "deliver");
  expect((await accept(await newKnown())).kind).toBe("accepted");
});

test("an adoption moves the bytes to the other publisher", async () => {
  const { accept, newKnown, settle, adoptions, used } = setup();
  const [queued, dead] = [await newKnown(), await newKnown()];
  await accept(queued);
  await accept(dead);
  await accept(newId());
  await settle(dead, "die");
  const before = await used();
  for (const state of ["dead", "queued"] as const) {
    const order = { from: publisher, to: other, by: "alice", limit: 10 };
    await adoptions.adoptBatch({ ...order, place: { state, after: undefined } });
  }
  const renamed = Object.entries(before).map(([name, bytes]) => [name.replace("acme", "other"), bytes]);
  expect(await used()).toEqual(Object.fromEntries(renamed));
});

test("a lost text gives its bytes back", async () => {
  const { accept, newKnown, parts, used } = setup();
  const id = await newKnown();
  await accept(id, 5000);
  await redis.del(parts.queue.payloadKey(id));
  await parts.outbox.losePayload(id);
  expect(await used()).toEqual({ "acme|dead_bytes": OVERHEAD_BYTES });
});

test("a recount measures what an older version accepted", async () => {
  const { accept, newKnown, settle, used, recount, key } = setup();
  const ids = await Promise.all(Array.from({ length: 250 }, () => newKnown()));
  await Promise.all([...ids.map((id) => accept(id)), accept(newId())]);
  await Promise.all(ids.slice(0, 120).map((id) => settle(id, "die")));
  const before = await used();
  const entries = await redis.keys(key("e:*"));
  await Promise.all(entries.map((entry) => redis.hdel(entry, "b")));
  await redis.del(key("gauges:stored:0"));
  expect(await used()).toEqual({});
  await recount();
  expect(await used()).toEqual(before);
});

test("a recount drops what an older version didn't take off", async () => {
  const { accept, newKnown, settle, used, recount, key } = setup();
  const [left, kept] = [await newKnown(), await newKnown()];
  await accept(left);
  const one = await used();
  await accept(kept);
  const entry = key(`e:${left.replaceAll("-", "")}`);
  const stored = (await redis.hget(entry, "b")) ?? "";
  await redis.hdel(entry, "b");
  await settle(left, "deliver");
  await redis.hset(entry, "b", stored);
  await recount();
  expect(await used()).toEqual(one);
});

test("a recount skips nothing if the entry that it comes to moves up meanwhile", async () => {
  const { accept, newKnown, settle, deadLetters, parts, used, recount } = setup();
  const ids = await Promise.all(Array.from({ length: 3 }, () => newKnown()));
  await Promise.all(ids.map((id) => accept(id)));
  const before = await used();
  const { run, keys, queue } = parts;
  const step = async (...entries: (string | number)[]) => {
    const args = [1, 0, keys.entryPrefix, MIB, ...entries];
    return z.array(z.string()).parse(await run("maintenance/recount", { keys: keys.forEntry(""), args }));
  };
  const [number = "", index = "", member = "", time = ""] = await step("", "");
  const id = idOf(member);
  await settle(id, "die");
  await deadLetters.replay(id, "alice");
  const [, nextIndex, nextMember] = await step(number, index, member, time, queue.payloadKey(id));
  expect(nextIndex).toBe("queued");
  expect(nextMember).not.toBe(member);
  await recount();
  expect(await used()).toEqual(before);
});

test("acknowledgments during a recount count once", async () => {
  const { accept, newKnown, settle, recount, used, parts } = setup();
  const before = await Promise.all(Array.from({ length: 300 }, () => newKnown()));
  await Promise.all(before.map((id) => accept(id)));
  const one = ((await used())["acme|queued_bytes"] ?? 0) / before.length;
  const during = await Promise.all(Array.from({ length: 100 }, () => newKnown()));
  await Promise.all([
    recount(),
    ...during.map((id) => accept(id)),
    ...before.slice(0, 150).map((id) => settle(id, "deliver")),
  ]);
  expect(await used()).toEqual({ "acme|queued_bytes": 250 * one });
  await parts.room.refresh();
  expect(parts.room.memory?.storedBytes).toBe(250 * one);
});

test("room is kept for known ids, and then for deliveries", () => {
  const room = planRoom({ usedBytes: 30 * MIB, limitBytes: 100 * MIB, storedBytes: 20 * MIB });
  expect(room).toEqual({ unknownBytes: 60 * MIB, knownBytes: 85 * MIB });
});

test("unknown ids stop at the watermark of Redis' memory, known ones later", async () => {
  const fixture = setup();
  const { accept, newKnown, settle, parts } = fixture;
  const { room } = parts;
  const setLimit = async (share: number) => {
    const used = Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
    await redis.config("SET", "maxmemory", Math.round(used / share));
    await room.refresh();
  };
  try {
    await setLimit(0.6);
    expect((await accept(newId())).kind).toBe("accepted_unknown");
    await setLimit(0.8);
    expect((await accept(newId())).kind).toBe("no_room");
    const id = await newKnown();
    expect((await accept(id)).kind).toBe("accepted");
    await setLimit(0.97);
    expect((await accept(await newKnown())).kind).toBe("no_room");
    expect(await settle(id, "deliver")).toBe("booked");
  } finally {
    await redis.config("SET", "maxmemory", 0);
  }
});
