/**
 * Erasures on a real Redis, in every place that a text can be. They guard against a text that stays anywhere in Redis, against
 * a worker that writes it back, and against counts that an erasure breaks.
 */
import { type DeliveryJob, type PublisherId, publisherIdSchema } from "@adrelay/contract";
import { eventually } from "@adrelay/testkit";
import { afterEach, expect, test } from "vitest";
import type { AdoptionPlace } from "../src/publishers/adoption.ts";
import { NO_JOBS, openTestQueue } from "./queue-fixture.ts";
import { jobOf, newId, openTestRedis, publisher } from "./store-fixture.ts";

const LONG_MS = 3_600_000;
const TEXT = "I have diabetes and drink Fizzwater";
const HASH = "FINGERPRINTOFTHETEXT";
const SESSION = "SESSIONHASH";
const ORDER = { by: "alice", reason: "the user asked" } as const;

const { server, redis } = await openTestRedis({ maxRetriesPerRequest: null });
redis.on("error", () => {});
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

function setup() {
  const fixture = openTestQueue(redis, (stop) => stops.push(stop));
  const { acknowledgments, injections, erasures, settle, work, queue, key } = fixture;
  const recorded = async () => {
    const id = newId();
    await injections.record({ id, publisher, outcome: "ok", deadlineMs: LONG_MS, session: SESSION });
    return id;
  };
  const accepted = async () => {
    const id = await recorded();
    await accept(id);
    return id;
  };
  const accept = (id: DeliveryJob["adResponseId"], textHash = HASH) => {
    const body = JSON.stringify({ ad_response_id: id, llm_response: `${TEXT}, "requestId":"x"` });
    const job = { ...jobOf(id), body, requestId: "request-1", replyTo: "adrelay:outcomes:g" };
    return acknowledgments.accept({ job, textHash });
  };
  const delayed = async () => {
    const id = await accepted();
    const worker = work(async () => {
      await settle(id, "retry");
      return { kind: "delayed", delayMs: LONG_MS };
    });
    await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, delayed: 1 }));
    await worker.stop();
    return id;
  };
  const dead = async () => {
    const id = await accepted();
    const worker = work(async () => {
      await settle(id, "die");
      return { kind: "failed", reason: "http_400" };
    });
    await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, failed: 1 }));
    await worker.stop();
    return id;
  };
  const erase = (id: DeliveryJob["adResponseId"]) => erasures.erase(id, ORDER);
  /** All that this store keeps in Redis, as one text. */
  const everything = async () => {
    const names = await redis.keys(`${key("")}*`);
    const contents = await Promise.all(names.map(contentOf));
    return [...names, ...contents].join("\n");
  };
  return { ...fixture, recorded, accepted, accept, delayed, dead, erase, everything };
}

/** Decoded, because the dump of a long value may be compressed. */
async function contentOf(name: string): Promise<string> {
  switch (await redis.type(name)) {
    case "hash":
      return JSON.stringify(await redis.hgetall(name));
    case "zset":
      return (await redis.zrange(name, "0", "-1")).join();
    case "list":
      return (await redis.lrange(name, 0, -1)).join();
    case "set":
      return (await redis.smembers(name)).join();
    case "stream":
      return JSON.stringify(await redis.xrange(name, "-", "+"));
    default:
      return String(await redis.get(name));
  }
}

async function expectNoTrace({ everything }: ReturnType<typeof setup>): Promise<void> {
  const kept = await everything();
  for (const trace of ["diabetes", HASH, SESSION]) {
    expect(kept).not.toContain(trace);
  }
}

test.each(["accepted", "delayed", "dead"] as const)(
  "an erased acknowledgment that was %s is discarded without a trace of its text",
  async (place) => {
    const fixture = setup();
    const id = await fixture[place]();
    expect(await fixture.everything()).toContain("diabetes");
    const result = await fixture.erase(id);
    expect(result).toEqual({ kind: "erased", state: "discarded", isUnderWay: false });
    await expectNoTrace(fixture);
    expect(await fixture.queue.depths()).toEqual(NO_JOBS);
    const { states, totals } = await fixture.snapshot();
    expect(states.filter(({ value }) => value !== 0)).toEqual([{ publisher, label: "discarded", value: 1 }]);
    expect(totals.get("erased")).toEqual([{ publisher, label: "", value: 1 }]);
    const { entries } = await fixture.audit.page(10, undefined);
    expect(entries).toMatchObject([
      { by: "alice", action: "erase", publisher, adResponseId: id, details: { reason: "the user asked" } },
    ]);
  },
);

test("the text leaves while an attempt is under way, and a failure writes nothing back", async () => {
  const fixture = setup();
  const { work, settle, queue, find } = fixture;
  const id = await fixture.accepted();
  const begun = Promise.withResolvers<void>();
  const erased = Promise.withResolvers<void>();
  const worker = work(async () => {
    begun.resolve();
    await erased.promise;
    expect(await settle(id, "retry")).toBe("same");
    return { kind: "delayed", delayMs: LONG_MS };
  });
  await begun.promise;
  expect(await fixture.erase(id)).toEqual({ kind: "erased", state: "discarded", isUnderWay: true });
  await expectNoTrace(fixture);
  erased.resolve();
  await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, delayed: 1 }));
  await worker.stop();
  await fixture.maintenance.sweep(LONG_MS);
  await eventually(async () => {
    await fixture.maintenance.sweep(LONG_MS);
    expect(await queue.depths()).toEqual(NO_JOBS);
  });
  expect(await find(id)).toMatchObject({ state: "discarded", attempts: 0 });
  await expectNoTrace(fixture);
});

test("a delivery that was under way during an erasure is still booked as delivered", async () => {
  const fixture = setup();
  const { settle, find, snapshot } = fixture;
  const id = await fixture.accepted();
  await redis.set(fixture.queue.lockKey(id), "a worker's", "PX", LONG_MS);
  expect(await fixture.erase(id)).toMatchObject({ kind: "erased", isUnderWay: true });
  expect(await settle(id, "deliver")).toBe("booked");
  expect(await find(id)).toMatchObject({ state: "delivered", attempts: 1, textHash: undefined });
  await expectNoTrace(fixture);
  const { states } = await snapshot();
  expect(states.filter(({ value }) => value !== 0)).toEqual([{ publisher, label: "delivered", value: 1 }]);
});

test("a worker that gets the job of an erased acknowledgment posts nothing", async () => {
  const fixture = setup();
  const id = await fixture.accepted();
  await fixture.erase(id);
  const begun = await fixture.begin(id, "");
  expect(begun).toEqual({ kind: "ended", state: "discarded" });
});

test("after an erasure a repeat with any text meets the same end", async () => {
  const fixture = setup();
  const id = await fixture.accepted();
  await fixture.erase(id);
  for (const textHash of [HASH, "another"]) {
    expect(await fixture.accept(id, textHash)).toMatchObject({
      kind: "repeat",
      entry: { state: "discarded" },
    });
  }
  expect(await fixture.queue.depths()).toEqual(NO_JOBS);
});

test("what was delivered keeps its state and loses its fingerprint and session", async () => {
  const fixture = setup();
  const id = await fixture.accepted();
  await fixture.settle(id, "deliver");
  await fixture.queue.remove(id);
  expect(await fixture.everything()).toContain(HASH);
  expect(await fixture.erase(id)).toEqual({ kind: "erased", state: "delivered", isUnderWay: false });
  await expectNoTrace(fixture);
  expect(await fixture.erase(id)).toMatchObject({ kind: "erased_before", state: "delivered" });
  expect((await fixture.audit.page(10, undefined)).entries).toHaveLength(1);
});

test("an acknowledgment that comes after an erasure is accepted, and the session still finds it", async () => {
  const fixture = setup();
  const id = await fixture.recorded();
  expect(await fixture.erase(id)).toEqual({ kind: "no_text", state: "awaiting", isUnderWay: false });
  expect(await fixture.accept(id)).toMatchObject({ kind: "accepted" });
  expect(await fixture.everything()).toContain("diabetes");
  expect(await eraseSession(fixture)).toMatchObject({ erased: 1 });
  await expectNoTrace(fixture);
});

test("a repeated erasure of what has no text yet changes nothing, also in the audit", async () => {
  const fixture = setup();
  const { erasures, audit } = fixture;
  const id = await fixture.recorded();
  const auditedBy = async () => (await audit.page(10, undefined)).entries.map(({ by }) => by);
  const noText = { kind: "no_text", state: "awaiting", isUnderWay: false };
  expect(await fixture.erase(id)).toEqual(noText);
  const before = await fixture.everything();
  expect(await fixture.erase(id)).toEqual(noText);
  expect(await erasures.erase(id, { ...ORDER, by: "alice 127.0.0.2" })).toEqual(noText);
  expect(await fixture.everything()).toBe(before);
  expect(await erasures.erase(id, { ...ORDER, by: "bob" })).toEqual(noText);
  expect(await auditedBy()).toEqual(["bob", "alice"]);
  await fixture.accept(id);
  expect(await fixture.erase(id)).toMatchObject({ kind: "erased" });
  expect(await auditedBy()).toEqual(["alice", "bob", "alice"]);
});

test("an unknown ad response is told, and nothing is written", async () => {
  const fixture = setup();
  expect(await fixture.erase(newId())).toEqual({ kind: "unknown" });
  expect((await fixture.audit.page(10, undefined)).entries).toEqual([]);
});

/** All steps of the search. */
async function eraseSession({ store }: ReturnType<typeof setup>, order: object = {}, from?: string) {
  const sum = { erased: 0, withoutText: 0, steps: 0 };
  let place = from;
  do {
    const whole = { ...ORDER, publisher, hashes: ["newer key's", SESSION], place, ...order };
    const step = await store.erasures.eraseSession(whole);
    sum.erased += step.erased;
    sum.withoutText += step.withoutText;
    sum.steps += 1;
    place = step.next;
  } while (place !== undefined);
  return sum;
}

test("a session of which nothing is found is in the audit all the same", async () => {
  const fixture = setup();
  expect(await eraseSession(fixture)).toMatchObject({ erased: 0, withoutText: 0 });
  const { entries } = await fixture.audit.page(10, undefined);
  expect(entries).toMatchObject([{ by: "alice", action: "erase", publisher }]);
  const details = { reason: "the user asked", session: expect.any(String), search: "ended" };
  expect(entries[0]?.details).toEqual(details);
});

test.each(["the publisher whose it was", "the one that adopted it last"])(
  "a session whose ad responses were adopted is found under %s",
  async (whose) => {
    const fixture = setup();
    const { adoptions } = fixture;
    const [between, last] = [publisherIdSchema.parse("between"), publisherIdSchema.parse("last")];
    const adopt = async (from: PublisherId, to: PublisherId) => {
      let place: AdoptionPlace | undefined;
      do {
        place = (await adoptions.adoptBatch({ from, to, by: "alice", place, limit: 10 })).next;
      } while (place !== undefined);
    };
    await fixture.dead();
    await Promise.all([fixture.accepted(), fixture.accepted(), fixture.recorded()]);
    await adopt(publisher, between);
    await adopt(between, last);
    expect(await eraseSession(fixture, { publisher: "somebody-else" })).toMatchObject({ erased: 0 });
    const named = whose === "the publisher whose it was" ? publisher : last;
    const { erased, withoutText } = await eraseSession(fixture, { publisher: named });
    expect(erased).toBe(3);
    expect(withoutText).toBeGreaterThanOrEqual(1);
    expect(await fixture.everything()).not.toContain("diabetes");
  },
);

test("a session of a thousand ad responses is erased in bounded steps, and no other one", async () => {
  const fixture = setup();
  const { injections, find } = fixture;
  const ids = await Promise.all(Array.from({ length: 1000 }, () => fixture.accepted()));
  const others = Array.from({ length: 1500 }, () => newId());
  const other = { publisher, outcome: "ok", deadlineMs: LONG_MS, session: "another" } as const;
  await Promise.all(others.map((id) => injections.record({ id, ...other })));
  const waiting = await fixture.recorded();
  expect(await eraseSession(fixture, { publisher: "somebody-else" })).toMatchObject({ erased: 0 });
  const { erased, withoutText, steps } = await eraseSession(fixture);
  expect(erased).toBe(1000);
  expect(withoutText).toBeGreaterThanOrEqual(1);
  expect(steps).toBeGreaterThan(1);
  expect(await fixture.everything()).not.toContain("diabetes");
  expect(await find(ids[0] ?? waiting)).toMatchObject({ state: "discarded" });
  expect(await find(others[0] ?? waiting)).toMatchObject({ state: "awaiting" });
  expect(await eraseSession(fixture)).toMatchObject({ erased: 0 });
}, 30_000);

test("a search begins again at a place of an older gateway, which names no run of Redis", async () => {
  const fixture = setup();
  await Promise.all(Array.from({ length: 20 }, fixture.accepted));
  const lastBucket = "18446744073709551615";
  expect(await eraseSession(fixture, {}, lastBucket)).toMatchObject({ erased: 20 });
});

test("a search that goes on after a restart of Redis leaves no text of the session", async () => {
  const fixture = setup();
  const { erasures, accepted, everything, partition } = fixture;
  await Promise.all(Array.from({ length: 40 }, accepted));
  const others = Array.from({ length: 4000 }, (_one, at) => [`${partition}:${at}`, ""]);
  await redis.mset(Object.fromEntries(others));
  const order = { ...ORDER, publisher, hashes: [SESSION] };
  const { next, erased } = await erasures.eraseSession({ ...order, place: undefined });
  expect(next).toBeDefined();
  expect(erased).toBeLessThan(40);
  await server.crash();
  await server.restart();
  // Each process has another order of keys. What was behind the place may be before it now.
  await eraseSession(fixture, {}, next);
  expect(await everything()).not.toContain("diabetes");
});
