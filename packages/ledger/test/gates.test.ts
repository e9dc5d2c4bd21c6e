/** Guards against a gate that forgets, doubles, hammers a provider that is down, or floods one that is back. */
import { randomUUID } from "node:crypto";
import { adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import {
  CIRCUIT_EVENTS,
  CIRCUIT_PHASES,
  type CircuitEvent,
  type CircuitPhase,
  decideCircuit,
} from "@adrelay/core";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { eventually } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type GateMember, loadGateState, ProviderGates } from "../src/index.ts";

const PROBE_MS = 300;
const RATE = 120;
const ROOM = 50;

let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

const publisher = (id: string) => publisherIdSchema.parse(id);
const account = { name: "alpha", publishers: [publisher("alpha"), publisher("beta")] };

function setup(options: { probeIntervalMs?: number } = {}) {
  const partition = randomUUID();
  const gates = new ProviderGates({
    redis,
    probeIntervalMs: PROBE_MS,
    recoveryRatePerSecond: RATE,
    partition,
    ...options,
  });
  const member = (of = "alpha"): GateMember => ({
    publisher: publisher(of),
    id: adResponseIdSchema.parse(randomUUID()),
  });
  const parkAt = (one: GateMember, dueAtMs: number) =>
    gates.park({ account: "alpha", member: one, place: { kind: "by_time", dueAtMs }, notify: undefined });
  const parkMany = async (count: number, of = "alpha") => {
    const members = Array.from({ length: count }, () => member(of));
    await Promise.all(members.map((one, at) => parkAt(one, at + 1)));
    return members;
  };
  const trip = () => gates.report("alpha", { kind: "trip", reason: "outage", holdMs: 0 });
  const stateOf = () => loadGateState(redis, account, partition);
  return { gates, stateOf, partition, member, parkAt, parkMany, trip };
}
type Fixture = ReturnType<typeof setup>;

const STEPS: Record<CircuitEvent, (fixture: Fixture) => Promise<unknown>> = {
  trip: ({ trip }) => trip(),
  probe_succeeded: ({ gates }) => gates.report("alpha", { kind: "probe_succeeded" }),
  probe_failed: ({ gates }) => gates.report("alpha", { kind: "probe_failed", reason: "outage", holdMs: 0 }),
  drained: ({ gates }) => gates.tick(account, ROOM),
};
const PATHS: Record<CircuitPhase, readonly CircuitEvent[]> = {
  closed: [],
  open: ["trip"],
  recovering: ["trip", "probe_succeeded"],
};

test.each(CIRCUIT_PHASES.flatMap((phase) => CIRCUIT_EVENTS.map((event) => [phase, event] as const)))(
  "a %s circuit moves on %s as the table says",
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

test("an open circuit lets one probe out at a time, however many workers ask", async () => {
  const { gates, member, parkMany, trip } = setup();
  await parkMany(30);
  await trip();
  expect((await gates.tick(account, ROOM)).released).toEqual([]);
  const [probe] = await eventually(async () => {
    const ticks = await Promise.all(Array.from({ length: 20 }, () => gates.tick(account, ROOM)));
    const released = ticks.flatMap((tick) => tick.released);
    expect(released).toHaveLength(1);
    return released;
  });
  const claims = await Promise.all([1, 2, 3].map(() => gates.claim("alpha", probe ?? member())));
  expect(claims.map(({ code }) => code).sort()).toEqual(["not_now", "not_now", "probe"]);
  expect((await gates.tick(account, ROOM)).released).toEqual([]);
});

test("probes of an open circuit keep their distance in Redis' time", async () => {
  const { gates, parkMany, stateOf, trip } = setup();
  await parkMany(30);
  await trip();
  const { sinceMs } = await stateOf();
  const probedAt: number[] = [sinceMs];
  await eventually(async () => {
    for (const one of (await gates.tick(account, ROOM)).released) {
      expect((await gates.claim("alpha", one)).code).toBe("probe");
      probedAt.push((await stateOf()).nextProbeAtMs - PROBE_MS);
    }
    expect(probedAt).toHaveLength(5);
  });
  const gaps = probedAt.slice(1).map((at, index) => at - (probedAt[index] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(PROBE_MS);
});

test("a recovering circuit never grants more than its rate within a second", async () => {
  const { gates, parkMany, stateOf, trip } = setup();
  await parkMany(400);
  await trip();
  await gates.report("alpha", { kind: "probe_succeeded" });
  const { sinceMs } = await stateOf();
  const grants: number[] = [];
  await eventually(async () => {
    const { released } = await gates.tick(account, ROOM);
    for (const one of released) {
      if ((await gates.claim("alpha", one)).code === "granted") {
        grants.push(await redisTimeMs());
      } else {
        await gates.park({ account: "alpha", member: one, place: { kind: "last" }, notify: undefined });
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
  const { gates, parkMany } = setup();
  const ofAlpha = await parkMany(20, "alpha");
  const ofBeta = await parkMany(3, "beta");
  const { released, phase } = await gates.tick(account, 8);
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

test("what a dead worker was let through with waits again at the front", async () => {
  const { gates, parkMany, partition } = setup();
  const [first] = await parkMany(3);
  const { released } = await gates.tick(account, 1);
  expect(released).toEqual([first]);
  await redis.zadd(`{adrelay:${partition}}:gate:alpha:released`, 1, `alpha|${first?.id.replaceAll("-", "")}`);
  const again = await gates.tick(account, 1);
  expect(again.released).toEqual([first]);
  expect(again.waiting).toBe(2);
});

test("a key that is refused again is probed a twelfth as often", async () => {
  const { gates, stateOf } = setup();
  await gates.report("alpha", { kind: "trip", reason: "auth", holdMs: 0 });
  const tripped = await stateOf();
  expect(tripped.nextProbeAtMs - tripped.sinceMs).toBe(PROBE_MS);
  const beforeMs = await redisTimeMs();
  await gates.report("alpha", { kind: "probe_failed", reason: "auth", holdMs: 0 });
  const { nextProbeAtMs, reason } = await stateOf();
  expect(reason).toBe("auth");
  expect(nextProbeAtMs - beforeMs).toBeGreaterThanOrEqual(PROBE_MS * 12 - 1);
});

test("a worker that comes anew makes a probe due at once", async () => {
  const { gates, parkMany } = setup({ probeIntervalMs: 60_000 });
  const [first] = await parkMany(1);
  await gates.report("alpha", { kind: "trip", reason: "auth", holdMs: 0 });
  expect((await gates.tick(account, ROOM)).released).toEqual([]);
  await gates.report("alpha", { kind: "probe_now" });
  expect((await gates.tick(account, ROOM)).released).toEqual([first]);
});

test("workers that come one after another probe no more often for that", async () => {
  const { gates, member, parkMany } = setup({ probeIntervalMs: 60_000 });
  const [first = member()] = await parkMany(2);
  await gates.report("alpha", { kind: "trip", reason: "outage", holdMs: 0 });
  await gates.report("alpha", { kind: "probe_now" });
  expect((await gates.tick(account, ROOM)).released).toEqual([first]);
  expect((await gates.claim("alpha", first)).code).toBe("probe");
  await gates.report("alpha", { kind: "probe_now" });
  expect((await gates.tick(account, ROOM)).released).toEqual([]);
});

test("a worker that comes anew leaves a pause that the provider asked for alone", async () => {
  const { gates, parkMany, stateOf } = setup();
  await parkMany(1);
  await gates.report("alpha", { kind: "trip", reason: "throttled", holdMs: 60_000 });
  const { nextProbeAtMs } = await stateOf();
  await gates.report("alpha", { kind: "probe_now" });
  expect((await stateOf()).nextProbeAtMs).toBe(nextProbeAtMs);
});

async function redisTimeMs(): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}
