/** Guards against a circuit breaker that loses or doubles acknowledgments, or sends a provider too many calls. */
import { randomUUID } from "node:crypto";
import { adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import {
  CIRCUIT_EVENTS,
  CIRCUIT_PHASES,
  type CircuitEvent,
  type CircuitPhase,
  decideCircuit,
} from "@adrelay/core";
import { eventually } from "@adrelay/testkit";
import { expect, test } from "vitest";
import type { CircuitMember } from "../src/index.ts";
import { openTestRedis, openTestStore } from "./store-fixture.ts";

const PROBE_MS = 300;
const RATE = 120;
const ROOM = roomOf(50);

function roomOf(total: number) {
  return { total, of: () => total };
}

const { redis } = await openTestRedis();

const publisher = (id: string) => publisherIdSchema.parse(id);
const account = { id: "account", name: "alpha", publishers: [publisher("alpha"), publisher("beta")] };

function setup(rules: { probeIntervalMs?: number } = {}) {
  const fixture = openTestStore(redis, {
    circuitRules: { probeIntervalMs: PROBE_MS, recoveryRatePerSecond: RATE, ...rules },
  });
  const { circuits } = fixture.parts;
  const member = (of = "alpha"): CircuitMember => ({
    publisher: publisher(of),
    id: adResponseIdSchema.parse(randomUUID()),
  });
  const parkAt = (one: CircuitMember, dueAtMs: number) =>
    circuits.park({
      account: account.id,
      member: one,
      place: { kind: "by_time", dueAtMs },
      notify: undefined,
    });
  const parkMany = async (count: number, of = "alpha") => {
    const members = Array.from({ length: count }, () => member(of));
    await Promise.all(members.map((one, at) => parkAt(one, at + 1)));
    return members;
  };
  const trip = () =>
    circuits.report(account, { kind: "trip", reason: "outage", holdMs: 0, accused: undefined });
  const stateOf = () => circuits.load(account);
  return { circuits, stateOf, key: fixture.key, member, parkAt, parkMany, trip };
}
type Fixture = ReturnType<typeof setup>;

const STEPS: Record<CircuitEvent, (fixture: Fixture) => Promise<unknown>> = {
  trip: ({ trip }) => trip(),
  probe_succeeded: ({ circuits }) => circuits.report(account, { kind: "probe_succeeded" }),
  probe_failed: ({ circuits }) =>
    circuits.report(account, {
      kind: "probe_failed",
      reason: "outage",
      holdMs: 0,
      publisher: publisher("alpha"),
    }),
  drained: ({ circuits }) => circuits.release(account, ROOM),
};
const PATHS: Record<CircuitPhase, readonly CircuitEvent[]> = {
  closed: [],
  open: ["trip"],
  recovering: ["trip", "probe_succeeded"],
};

test.each(CIRCUIT_PHASES.flatMap((phase) => CIRCUIT_EVENTS.map((event) => [phase, event] as const)))(
  "a %s breaker moves at %s as in the table of core",
  async (phase, event) => {
    const fixture = setup();
    for (const step of PATHS[phase]) {
      await STEPS[step](fixture);
    }
    expect((await fixture.stateOf()).phase).toBe(phase);
    await STEPS[event](fixture);
    expect((await fixture.stateOf()).phase).toBe(decideCircuit(phase, event));
  },
);

test("of all workers that ask, one learns that its release closed the breaker", async () => {
  const { circuits, parkMany, trip } = setup();
  await parkMany(1);
  await trip();
  await circuits.report(account, { kind: "probe_succeeded" });
  const closings = await eventually(async () => {
    const releases = await Promise.all(Array.from({ length: 20 }, () => circuits.release(account, ROOM)));
    for (const one of releases.flatMap(({ released }) => released)) {
      await circuits.claim(account, one);
    }
    expect(releases.at(-1)?.phase).toBe("closed");
    return releases.filter(({ hasClosed }) => hasClosed);
  });
  expect(closings).toHaveLength(1);
  expect(closings[0]?.phase).toBe("closed");
});

test("an open breaker releases one probe at a time, however many workers ask", async () => {
  const { circuits, member, parkMany, trip } = setup();
  await parkMany(30);
  await trip();
  expect((await circuits.release(account, ROOM)).released).toEqual([]);
  const [probe] = await eventually(async () => {
    const releases = await Promise.all(Array.from({ length: 20 }, () => circuits.release(account, ROOM)));
    const released = releases.flatMap((release) => release.released);
    expect(released).toHaveLength(1);
    return released;
  });
  const claims = await Promise.all([1, 2, 3].map(() => circuits.claim(account, probe ?? member())));
  expect(claims.map(({ code }) => code).sort()).toEqual(["not_now", "not_now", "probe"]);
  expect((await circuits.release(account, ROOM)).released).toEqual([]);
});

test("probes of an open breaker keep their interval by Redis' clock", async () => {
  const { circuits, parkMany, stateOf, trip } = setup();
  await parkMany(30);
  await trip();
  const { sinceMs } = await stateOf();
  const probedAt: number[] = [sinceMs];
  await eventually(async () => {
    for (const one of (await circuits.release(account, ROOM)).released) {
      expect((await circuits.claim(account, one)).code).toBe("probe");
      probedAt.push((await stateOf()).nextProbeAtMs - PROBE_MS);
    }
    expect(probedAt).toHaveLength(5);
  });
  const gaps = probedAt.slice(1).map((at, index) => at - (probedAt[index] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(PROBE_MS);
});

test("a recovering breaker never grants more than its rate within a second", async () => {
  const { circuits, parkMany, stateOf, trip } = setup();
  await parkMany(400);
  await trip();
  await circuits.report(account, { kind: "probe_succeeded" });
  const { sinceMs } = await stateOf();
  const grants: number[] = [];
  await eventually(async () => {
    const { released } = await circuits.release(account, ROOM);
    for (const one of released) {
      if ((await circuits.claim(account, one)).code === "granted") {
        grants.push(await redisTimeMs());
      } else {
        await circuits.park({ account: account.id, member: one, place: { kind: "last" }, notify: undefined });
      }
    }
    expect(await redisTimeMs()).toBeGreaterThan(sinceMs + 2500);
  });
  const peak = Math.max(
    ...grants.map((from) => grants.filter((at) => at >= from && at < from + 1000).length),
  );
  expect(grants.length).toBeGreaterThan(10);
  expect(peak).toBeLessThanOrEqual(RATE);
});

test("publishers of one account take turns, each in the order of its acknowledgments", async () => {
  const { circuits, parkMany } = setup();
  const ofAlpha = await parkMany(20, "alpha");
  const ofBeta = await parkMany(3, "beta");
  const { released, phase } = await circuits.release(account, roomOf(8));
  expect(phase).toBe("closed");
  expect(released).toEqual([
    ofAlpha[0],
    ofBeta[0],
    ofAlpha[1],
    ofBeta[1],
    ofAlpha[2],
    ofBeta[2],
    ofAlpha[3],
    ofAlpha[4],
  ]);
});

test("an acknowledgment that was released to a dead worker is parked again at the front", async () => {
  const { circuits, parkMany, key } = setup();
  const [first] = await parkMany(3);
  const { released } = await circuits.release(account, roomOf(1));
  expect(released).toEqual([first]);
  await redis.zadd(key("gate:account:released"), 1, `alpha|${first?.id.replaceAll("-", "")}`);
  const again = await circuits.release(account, roomOf(1));
  expect(again.released).toEqual([first]);
  expect(again.parked).toBe(2);
});

test("if a worker with another key fetches a probe and parks it, the next one is released at once", async () => {
  const { circuits, parkMany, trip } = setup();
  const [first, second] = await parkMany(3);
  await trip();
  await eventually(async () => expect((await circuits.release(account, ROOM)).released).toEqual([first]));
  expect((await circuits.release(account, ROOM)).released).toEqual([]);
  await circuits.park({
    account: "of-an-old-key",
    member: first ?? expect.fail("nothing was parked"),
    place: { kind: "last" },
    notify: undefined,
  });
  expect((await circuits.release(account, ROOM)).released).toEqual([second]);
});

test("a key that is refused again is probed a twelfth as often", async () => {
  const { circuits, stateOf } = setup();
  await circuits.report(account, { kind: "trip", reason: "auth", holdMs: 0, accused: undefined });
  const tripped = await stateOf();
  expect(tripped.nextProbeAtMs - tripped.sinceMs).toBe(PROBE_MS);
  const beforeMs = await redisTimeMs();
  await circuits.report(account, {
    kind: "probe_failed",
    reason: "auth",
    holdMs: 0,
    publisher: publisher("alpha"),
  });
  const { nextProbeAtMs, reason } = await stateOf();
  expect(reason).toBe("auth");
  expect(nextProbeAtMs - beforeMs).toBeGreaterThanOrEqual(PROBE_MS * 12 - 1);
});

test("a worker that starts makes a probe due immediately", async () => {
  const { circuits, parkMany } = setup({ probeIntervalMs: 60_000 });
  const [first] = await parkMany(1);
  await circuits.report(account, { kind: "trip", reason: "auth", holdMs: 0, accused: undefined });
  expect((await circuits.release(account, ROOM)).released).toEqual([]);
  await circuits.report(account, { kind: "probe_now" });
  expect((await circuits.release(account, ROOM)).released).toEqual([first]);
});

test("workers that start one after another don't probe more often", async () => {
  const { circuits, member, parkMany } = setup({ probeIntervalMs: 60_000 });
  const [first = member()] = await parkMany(2);
  await circuits.report(account, { kind: "trip", reason: "outage", holdMs: 0, accused: undefined });
  await circuits.report(account, { kind: "probe_now" });
  expect((await circuits.release(account, ROOM)).released).toEqual([first]);
  expect((await circuits.claim(account, first)).code).toBe("probe");
  await circuits.report(account, { kind: "probe_now" });
  expect((await circuits.release(account, ROOM)).released).toEqual([]);
});

test("a worker that starts doesn't shorten a pause that the provider asked for", async () => {
  const { circuits, parkMany, stateOf } = setup();
  await parkMany(1);
  await circuits.report(account, { kind: "trip", reason: "throttled", holdMs: 60_000, accused: undefined });
  const { nextProbeAtMs } = await stateOf();
  await circuits.report(account, { kind: "probe_now" });
  expect((await stateOf()).nextProbeAtMs).toBe(nextProbeAtMs);
});

test("an open breaker makes a probe at once of a publisher that isn't accused, and only of that one", async () => {
  const { circuits, member, parkMany, stateOf } = setup({ probeIntervalMs: 60_000 });
  await parkMany(3, "alpha");
  const accused = publisher("alpha");
  await circuits.report(account, { kind: "trip", reason: "outage", holdMs: 0, accused });
  expect((await circuits.release(account, ROOM)).released).toEqual([]);
  const [ofBeta = member("beta")] = await parkMany(2, "beta");
  expect((await circuits.release(account, ROOM)).released).toEqual([ofBeta]);
  expect((await circuits.claim(account, ofBeta)).code).toBe("probe");
  const failed = { kind: "probe_failed", reason: "outage", holdMs: 0 } as const;
  await circuits.report(account, { ...failed, publisher: accused });
  expect((await circuits.release(account, ROOM)).released).toHaveLength(1);
  await circuits.report(account, { ...failed, publisher: publisher("beta") });
  expect((await stateOf()).phase).toBe("open");
});

test("early probes of another publisher don't shorten the pause of the accused one", async () => {
  const { circuits, member, parkMany, stateOf } = setup();
  const accused = publisher("alpha");
  await parkMany(1, "alpha");
  await circuits.report(account, { kind: "trip", reason: "throttled", holdMs: 60_000, accused });
  const { nextProbeAtMs } = await stateOf();
  const [first = member("beta"), second] = await parkMany(2, "beta");
  expect((await circuits.release(account, ROOM)).released).toEqual([first]);
  expect((await circuits.claim(account, first)).code).toBe("probe");
  const failed = { kind: "probe_failed", holdMs: 0 } as const;
  await circuits.report(account, { ...failed, reason: undefined, publisher: undefined });
  expect((await stateOf()).nextProbeAtMs).toBe(nextProbeAtMs);
  // It may have been about that acknowledgment only, so the next one is a probe at once too.
  expect((await circuits.release(account, ROOM)).released).toEqual([second]);
  await circuits.report(account, { ...failed, reason: "outage", publisher: publisher("beta") });
  expect((await stateOf()).nextProbeAtMs).toBe(nextProbeAtMs);
});

test("each publisher is released as far as the worker has room for it", async () => {
  const { circuits, parkMany } = setup();
  await parkMany(10, "alpha");
  await parkMany(10, "beta");
  const room = { total: 9, of: (one: string) => (one === "alpha" ? 2 : 20) };
  const { released, parked } = await circuits.release(account, room);
  expect(released.filter((one) => one.publisher === "alpha")).toHaveLength(2);
  expect(released).toHaveLength(9);
  expect(parked).toBe(11);
});

test("a probe that was turned away keeps the reason, and the next one comes an interval later", async () => {
  const { circuits, stateOf } = setup();
  await circuits.report(account, { kind: "trip", reason: "auth", holdMs: 0, accused: undefined });
  const beforeMs = await redisTimeMs();
  await circuits.report(account, {
    kind: "probe_failed",
    reason: undefined,
    holdMs: 0,
    publisher: undefined,
  });
  const { nextProbeAtMs, reason } = await stateOf();
  expect(reason).toBe("auth");
  expect(nextProbeAtMs - beforeMs).toBeGreaterThanOrEqual(PROBE_MS - 1);
  expect(nextProbeAtMs - beforeMs).toBeLessThan(2 * PROBE_MS);
});

test("one throttled probe doesn't pause the account, a second one in a row does", async () => {
  const { circuits, stateOf, trip } = setup();
  const waitAfterProbe = async () => {
    const beforeMs = await redisTimeMs();
    await circuits.report(account, {
      kind: "probe_failed",
      reason: "throttled",
      holdMs: 60_000,
      publisher: publisher("alpha"),
    });
    return (await stateOf()).nextProbeAtMs - beforeMs;
  };
  await trip();
  expect(await waitAfterProbe()).toBeLessThan(2 * PROBE_MS);
  expect(await waitAfterProbe()).toBeGreaterThanOrEqual(60_000 - 1);
});

test("only the release that closes a breaker says so", async () => {
  const { circuits, trip } = setup();
  await trip();
  await circuits.report(account, { kind: "probe_succeeded" });
  const releases = await Promise.all([1, 2, 3].map(() => circuits.release(account, ROOM)));
  expect(releases.filter(({ hasClosed }) => hasClosed)).toHaveLength(1);
  expect(releases.every(({ phase }) => phase === "closed")).toBe(true);
});

test("after Redis' clock was set back by a day, probes, leases and the recovery's rate go on", async () => {
  const { circuits, member, parkMany, key, stateOf, trip } = setup();
  const aDayOn = (await redisTimeMs()) + 86_400_000;
  const [first = member()] = await parkMany(2);
  await trip();
  await redis.hset(key("gate:account"), { next: aDayOn, since: aDayOn, probed: aDayOn, at: aDayOn });
  expect((await stateOf()).nextProbeAtMs).toBeLessThanOrEqual(aDayOn);
  // The longest wait for a probe is a pause that a provider may ask for: five minutes.
  const shown = await circuits.release(account, ROOM);
  expect(shown.nextProbeAtMs).toBeLessThanOrEqual((await redisTimeMs()) + 300_000);
  await circuits.report(account, { kind: "probe_now" });
  await eventually(async () => expect((await circuits.release(account, ROOM)).released).toEqual([first]));
  await redis.zadd(key("gate:account:released"), aDayOn, `alpha|${first.id.replaceAll("-", "")}`);
  expect((await circuits.release(account, ROOM)).released).toEqual([first]);
});

test("the open breaker of another URL or key is named, with the process that opened it", async () => {
  const { circuits } = setup();
  await circuits.report(account, { kind: "trip", reason: "auth", holdMs: 0, accused: undefined });
  expect(await circuits.foreign(new Set([account.id]))).toEqual([]);
  expect(await circuits.foreign(new Set())).toMatchObject([{ name: "alpha", reason: "auth", by: "" }]);
});

test("the breaker of a URL or key that no worker has any more is forgotten within minutes", async () => {
  const { circuits, key } = setup();
  await circuits.report(account, { kind: "trip", reason: "auth", holdMs: 0, accused: undefined });
  await circuits.forgetSilent(new Set());
  expect(await circuits.busy()).toEqual(new Set([account.id]));
  await redis.hset(key("gate:account"), { asked: (await redisTimeMs()) - 120_000 });
  expect(await circuits.foreign(new Set())).toEqual([]);
  await circuits.forgetSilent(new Set());
  expect(await circuits.busy()).toEqual(new Set());
  // A worker that still has it makes it known again.
  expect((await circuits.release(account, ROOM)).phase).toBe("open");
  expect(await circuits.busy()).toEqual(new Set([account.id]));
  expect(await circuits.foreign(new Set())).toHaveLength(1);
});

async function redisTimeMs(): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}
