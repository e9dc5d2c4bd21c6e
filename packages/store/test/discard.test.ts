/**
 * Discards of queued acknowledgments on a real Redis, in each place that a job can have. They guard against a discarded
 * acknowledgment that is posted after all, and against a delivered one that is booked as discarded.
 */
import type { DeliveryJob } from "@adrelay/contract";
import { eventually } from "@adrelay/testkit";
import { afterEach, expect, test } from "vitest";
import { DeadLetters } from "../src/dead-letters/dead-letters.ts";
import { Outbox } from "../src/dead-letters/outbox.ts";
import type { JobEnd } from "../src/delivery/job-completer.ts";
import { NO_JOBS, newJob, openTestQueue } from "./queue-fixture.ts";
import { jobOf, newId, openTestRedis, publisher } from "./store-fixture.ts";

const LONG_MS = 3_600_000;
const ROOM = { total: 1, of: () => 1 };
const ACCOUNT = { id: "account", name: "acme", publishers: [publisher] };
const BY_TIME = { kind: "by_time", dueAtMs: 1 } as const;

const { redis } = await openTestRedis({ maxRetriesPerRequest: null });
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

function setup() {
  const fixture = openTestQueue(redis, (stop) => stops.push(stop));
  const { acknowledgments, deadLetters, circuits, settle, work, queue, parts, key } = fixture;
  const accepted = async (job: DeliveryJob = newJob()) => {
    await acknowledgments.accept({ job, textHash: "hash" });
    return job.adResponseId;
  };
  /** One whose first attempt failed, and whose job the queue delays. */
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
  const parked = async () => {
    await circuits.report(ACCOUNT, { kind: "trip", reason: "outage", holdMs: 0, accused: undefined });
    const id = await delayed();
    await parts.circuits.park({
      account: ACCOUNT.id,
      member: { publisher, id },
      place: BY_TIME,
      notify: undefined,
    });
    return id;
  };
  const released = async () => {
    const id = await parked();
    // Otherwise no probe would be due yet.
    await circuits.report(ACCOUNT, { kind: "probe_succeeded" });
    const release = await circuits.release(ACCOUNT, ROOM);
    expect(release.released).toEqual([{ publisher, id }]);
    await circuits.bringBack(ACCOUNT, release);
    expect(await queue.depths()).toEqual({ ...NO_JOBS, waiting: 1 });
    return id;
  };
  const discard = async (id: Awaited<ReturnType<typeof accepted>>) => {
    const discarded = await deadLetters.discard(id, "alice", "gone stale");
    await ("followed" in discarded ? discarded.followed : undefined);
    return discarded.kind;
  };
  const indexed = (name: string) => redis.zrange(key(name), "0", "-1");
  return { ...fixture, places: { waiting: accepted, delayed, parked, released }, accepted, discard, indexed };
}
type Fixture = ReturnType<typeof setup>;

async function expectGone(fixture: Fixture, id: Awaited<ReturnType<Fixture["accepted"]>>): Promise<void> {
  const { find, queue, snapshot, indexed } = fixture;
  expect(await find(id)).toMatchObject({ state: "discarded", endedAtMs: expect.any(Number) });
  expect(await queue.depths()).toEqual(NO_JOBS);
  expect(await redis.exists(queue.payloadKey(id))).toBe(0);
  for (const name of ["queued", "queued:due", `parked:${publisher}`, "payload-work"]) {
    expect(await indexed(name), name).toEqual([]);
  }
  const { states, totals } = await snapshot();
  expect(states.filter(({ value }) => value !== 0)).toEqual([{ publisher, label: "discarded", value: 1 }]);
  expect(totals.get("discarded")).toEqual([{ publisher, label: "", value: 1 }]);
}

test.each(["waiting", "delayed", "parked", "released"] as const)(
  "a queued acknowledgment whose job is %s is discarded, counted and audited",
  async (place) => {
    const fixture = setup();
    const id = await fixture.places[place]();
    expect(await fixture.discard(id)).toBe("booked");
    await expectGone(fixture, id);
    const { entries } = await fixture.audit.page(10, undefined);
    expect(entries).toMatchObject([
      { by: "alice", action: "discard", adResponseId: id, details: { reason: "gone stale", from: "queued" } },
    ]);
    expect(await fixture.discard(id)).toBe("wrong_state");
    expect(await fixture.acknowledgments.accept({ job: jobOf(id), textHash: "hash" })).toMatchObject({
      kind: "repeat",
      entry: { state: "discarded" },
    });
  },
);

test("a released acknowledgment that is discarded leaves nothing parked", async () => {
  const fixture = setup();
  const { circuits, discard, places, indexed, key } = fixture;
  await discard(await places.released());
  // Its lease ends, so the circuit breaker parks it again and finds that it has no job.
  await redis.zadd(
    key(`gate:${ACCOUNT.id}:released`),
    "XX",
    1,
    ...(await indexed(`gate:${ACCOUNT.id}:released`)),
  );
  await circuits.bringBack(ACCOUNT, await circuits.release(ACCOUNT, ROOM));
  expect(await circuits.release(ACCOUNT, ROOM)).toMatchObject({ phase: "closed", parked: 0, released: [] });
});

test("a discard during an attempt is refused, and the attempt's outcome is booked", async () => {
  const fixture = setup();
  const { accepted, discard, work, find, settle, audit, queue } = fixture;
  const id = await accepted();
  const { promise: outcome, resolve: answer } = Promise.withResolvers<JobEnd>();
  work(() => outcome);
  await eventually(async () => expect((await queue.depths()).active).toBe(1));
  expect(await discard(id)).toBe("attempt_under_way");
  expect(await find(id)).toMatchObject({ state: "queued" });
  expect((await audit.page(10, undefined)).entries).toEqual([]);
  expect(await settle(id, "deliver")).toBe("booked");
  answer({ kind: "completed", finalAttempt: undefined });
  await eventually(async () => expect(await queue.depths()).toEqual(NO_JOBS));
  expect(await discard(id)).toBe("wrong_state");
  expect(await find(id)).toMatchObject({ state: "delivered" });
});

/** The process dies right after a booking: nobody does the task there and then. */
class AbandonedOutbox extends Outbox {
  override async follow(): Promise<void> {}
}

test("a job that comes up before its text is removed posts nothing", async () => {
  const { accepted, parts, starter, find, work, queue, snapshot } = setup();
  const id = await accepted();
  const deadLetters = new DeadLetters({ ...parts, outbox: new AbandonedOutbox(parts) });
  await deadLetters.discard(id, "alice", "stale");
  expect((await queue.depths()).waiting).toBe(1);
  const begun: unknown[] = [];
  work(async (job, { textHash, payloadKey, prefetched }) => {
    begun.push(await starter.begin({ job, textHash, payloadKey, prefetched }));
    return { kind: "completed", finalAttempt: undefined };
  });
  await eventually(async () => expect(await queue.depths()).toEqual(NO_JOBS));
  expect(begun).toEqual([{ kind: "ended", state: "discarded" }]);
  await parts.outbox.run(await parts.outbox.leaseDue(10, LONG_MS));
  expect(await find(id)).toMatchObject({ state: "discarded" });
  expect((await snapshot()).outboxTasks).toBe(0);
});

test("a gateway that waits for a discarded acknowledgment is told at once", async () => {
  const { accepted, discard } = setup();
  // What a caller writes may look like the job's own member.
  const body = '{"replyTo":"forged","llm_response":"\\"replyTo\\":\\"forged\\""}';
  const job = { ...newJob(body), replyTo: "adrelay:outcomes:1" };
  const id = await accepted(job);
  const listener = redis.duplicate();
  const heard: string[][] = [];
  listener.on("message", (channel, message) => heard.push([channel, message]));
  await listener.subscribe("adrelay:outcomes:1", "forged");
  await discard(id);
  await eventually(() => expect(heard).toHaveLength(1));
  listener.disconnect();
  const [channel, message = ""] = heard[0] ?? [];
  expect(channel).toBe("adrelay:outcomes:1");
  expect(JSON.parse(message)).toEqual({
    adResponseId: id,
    publisher,
    event: "discard",
    code: "discarded",
    delayMs: 0,
  });
});

test("a discard in a full Redis is booked", async () => {
  const { accepted, deadLetters, find } = setup();
  const id = await accepted();
  await redis.config("SET", "maxmemory", "1");
  try {
    await expect(redis.set("key", "value")).rejects.toThrow("OOM");
    expect(await deadLetters.discard(id, "alice", "stale")).toMatchObject({ kind: "booked" });
  } finally {
    await redis.config("SET", "maxmemory", "0");
  }
  expect(await find(id)).toMatchObject({ state: "discarded" });
});

test("an unknown id can't be discarded", async () => {
  expect(await setup().discard(newId())).toBe("unknown");
});
