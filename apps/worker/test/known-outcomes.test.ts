/** What a provider has answered is booked without a second post, whatever Redis and the way to it go through meanwhile. */
import type { TestRedis } from "@adrelay/dev-servers";
import { type AppProcess, acknowledged, eventually, pause } from "@adrelay/testkit";
import type { Redis } from "ioredis";
import { afterEach, expect, test } from "vitest";
import { openWorkerFixture } from "./worker-fixture.ts";

/** More than fit into one call of a script. */
const JOBS = 30;
const PROVIDER_TAKES_MS = 800;
/** Longer than the provider takes: the answers come while Redis is out of reach. */
const AWAY_MS = 1500;
/** Far less than a lost job waits for: the lock that its first run held. */
const BOOKED_WITHIN_MS = 4000;

/** For each record that Redis reads when it starts. It tells that it is at it after each 1024. */
const LOAD_DELAY_US = 300;
const RECORDS_FOR_LONG = 8000;

const stops: (() => unknown)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

/** `places`: how many attempts a worker makes at once. */
async function setup(places = JOBS) {
  const { server, redis, provider, store, find, accept, startWorker } = await openWorkerFixture(
    (stop) => stops.push(stop),
    ["--key-load-delay", String(LOAD_DELAY_US)],
  );
  const admin = redis.duplicate();
  admin.on("error", () => {});
  stops.push(() => admin.disconnect());
  provider.onAcknowledge(() => ({ kind: "late", delayMs: PROVIDER_TAKES_MS, answer: acknowledged() }));
  const worker = await startWorker(places);
  const ids = await Promise.all(Array.from({ length: JOBS }, () => accept()));
  await eventually(() => expect(provider.posts).toHaveLength(places));
  const states = async () => {
    const entries = await Promise.all(ids.map((id) => find(id)));
    return new Set(entries.map((entry) => entry?.state));
  };
  const counts = () => store.queueDepths();
  return { server, admin, provider, worker, states, counts };
}

const tell = async ({ admin }: Surroundings, ...lines: string[]) => {
  for (const line of lines) {
    const [name = "", ...args] = line.split(" ");
    await admin.call(name, ...args.map((arg) => (arg === "''" ? "" : arg)));
  }
};

const KILL_ALL = "CLIENT KILL TYPE normal SKIPME yes";

interface Surroundings {
  readonly server: TestRedis;
  /** Connected throughout. */
  readonly admin: Redis;
}

interface Way {
  readonly name: string;
  /** What Redis says meanwhile, if it says anything. */
  readonly refusal?: string;
  /** Redis before this major version refuses commands in this way, but no scripts. */
  readonly refusesScriptsSince?: number;
  takeAway(surroundings: Surroundings): Promise<void>;
  bringBack(surroundings: Surroundings): Promise<void>;
}

/** To test one more way, add it here. */
const WAYS: readonly Way[] = [
  {
    name: "its connections killed",
    takeAway: (all) => tell(all, KILL_ALL),
    bringBack: () => Promise.resolve(),
  },
  {
    name: "Redis killed and started again",
    takeAway: ({ server }) => server.crash(),
    bringBack: ({ server }) => server.restart(),
  },
  {
    name: "Redis started again and long at reading its data",
    takeAway: async ({ server, admin }) => {
      await admin.eval("for n = 1, ARGV[1] do redis.call('SET', 'record:' .. n, n) end", 0, RECORDS_FOR_LONG);
      await server.crash();
    },
    bringBack: ({ server }) => server.restart(),
  },
  {
    name: "another password for a while",
    takeAway: (all) => tell(all, "CONFIG SET requirepass other", KILL_ALL),
    bringBack: (all) => tell(all, "CONFIG SET requirepass ''"),
  },
  {
    name: "its user forbidden to do anything for a while",
    takeAway: (all) =>
      tell(
        all,
        "ACL SETUSER admin on nopass allcommands allkeys allchannels",
        "AUTH admin any",
        "ACL SETUSER default off",
        KILL_ALL,
      ),
    bringBack: (all) => tell(all, "ACL SETUSER default on"),
  },
  {
    name: "Redis taking no more clients for a while",
    takeAway: (all) => tell(all, "CONFIG SET maxclients 1", KILL_ALL),
    bringBack: (all) => tell(all, "CONFIG SET maxclients 1000"),
  },
  {
    name: "Redis a replica for a while",
    takeAway: (all) => tell(all, "REPLICAOF 127.0.0.1 1"),
    bringBack: (all) => tell(all, "REPLICAOF NO ONE"),
    refusal: "READONLY",
  },
  {
    name: "Redis short of replicas for a while",
    takeAway: (all) => tell(all, "CONFIG SET min-replicas-to-write 1"),
    bringBack: (all) => tell(all, "CONFIG SET min-replicas-to-write 0"),
    refusal: "NOREPLICAS",
    refusesScriptsSince: 7,
  },
  {
    name: "scripts forbidden for a while",
    takeAway: (all) => tell(all, "ACL SETUSER default -eval -evalsha"),
    bringBack: (all) => tell(all, "ACL SETUSER default +eval +evalsha"),
    refusal: "NOPERM",
  },
];

test.each(WAYS)("an outcome is booked once, with $name", async (way) => {
  const { takeAway, bringBack } = way;
  const { provider, worker, states, ...surroundings } = await setup();
  const refusal = await refusalOf(way, surroundings);
  await takeAway(surroundings);
  await pause(AWAY_MS);
  await bringBack(surroundings);
  await eventually(async () => expect(await states()).toEqual(new Set(["delivered"])), BOOKED_WITHIN_MS);
  expect(provider.posts).toHaveLength(JOBS);
  expect(worker.logs.filter(({ event }) => event === "attempt_failed")).toEqual([]);
  await eventually(() => expect(bookingLines(worker)).toMatchObject(linesOf(refusal)));
});

async function refusalOf(
  { refusal, refusesScriptsSince = 0 }: Way,
  { admin }: Surroundings,
): Promise<string | undefined> {
  const [, major = 0] = /redis_version:(\d+)/.exec(await admin.info("server")) ?? [];
  return Number(major) < refusesScriptsSince ? undefined : refusal;
}

function bookingLines({ logs }: AppProcess): unknown[] {
  return logs.filter(({ event }) => String(event).startsWith("booking_"));
}

/** Once each, however many attempts wait. */
function linesOf(refusal: string | undefined): unknown[] {
  return refusal === undefined
    ? []
    : [
        { level: "warn", event: "booking_refused", err: { message: expect.stringContaining(refusal) } },
        { level: "info", event: "booking_resumed" },
      ];
}

test("a full Redis takes what came of attempts, hands out the next jobs and lets go of their texts", async () => {
  const { provider, worker, states, counts, ...surroundings } = await setup(10);
  await tell(surroundings, "CONFIG SET maxmemory 1");
  await eventually(async () => expect(await states()).toEqual(new Set(["delivered"])));
  expect(provider.posts).toHaveLength(JOBS);
  expect(await counts()).toMatchObject({ waiting: 0, active: 0, delayed: 0 });
  expect(worker.logs.filter(({ event }) => event === "attempt_failed")).toEqual([]);
});
