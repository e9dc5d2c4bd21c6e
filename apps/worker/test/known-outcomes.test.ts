/** A known outcome is booked without a second post, even if Redis or the connection to it fails meanwhile. */
import type { TestRedis } from "@adrelay/dev-servers";
import { type AppProcess, acknowledged, eventually, pause } from "@adrelay/testkit";
import type { Redis } from "ioredis";
import { afterEach, expect, test } from "vitest";
import { openWorkerFixture } from "./worker-fixture.ts";

/** More than one call of a script accepts. */
const JOBS = 30;
const PROVIDER_TAKES_MS = 800;
/** Longer than the provider takes, so that its answers come while Redis can't be reached. */
const FAULT_MS = 1500;
/** Far less than the lock on a job lasts, which would have to expire before a second run. */
const BOOKED_WITHIN_MS = 10_000;

/** For each record that Redis reads when it starts. It reports its progress after each 1024. */
const LOAD_DELAY_US = 300;
const RECORDS_FOR_LONG = 8000;

const stops: (() => unknown)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

/** `concurrency`: how many attempts a worker makes at the same time. */
async function setup(concurrency = JOBS) {
  const { server, redis, provider, store, find, accept, startWorker } = await openWorkerFixture(
    (stop) => stops.push(stop),
    ["--key-load-delay", String(LOAD_DELAY_US)],
  );
  const admin = redis.duplicate();
  admin.on("error", () => {});
  stops.push(() => admin.disconnect());
  provider.onAcknowledge(() => ({ kind: "late", delayMs: PROVIDER_TAKES_MS, answer: acknowledged() }));
  const worker = await startWorker(concurrency);
  const ids = await Promise.all(Array.from({ length: JOBS }, () => accept()));
  await eventually(() => expect(provider.posts.length).toBeGreaterThanOrEqual(concurrency));
  const states = async () => {
    const entries = await Promise.all(ids.map((id) => find(id)));
    return new Set(entries.map((entry) => entry?.state));
  };
  const counts = () => store.queueDepths();
  return { server, admin, provider, worker, states, counts };
}

const command = async ({ admin }: Surroundings, ...lines: string[]) => {
  for (const line of lines) {
    const [name = "", ...args] = line.split(" ");
    await admin.call(name, ...args.map((arg) => (arg === "''" ? "" : arg)));
  }
};

const KILL_ALL = "CLIENT KILL TYPE normal SKIPME yes";

interface Surroundings {
  readonly server: TestRedis;
  /** It stays connected during the fault. */
  readonly admin: Redis;
}

interface Fault {
  readonly name: string;
  /** The error that Redis answers meanwhile, if it answers at all. */
  readonly refusal?: string;
  /** Redis before this major version refuses commands in this way, but no scripts. */
  readonly refusesScriptsSince?: number;
  begin(surroundings: Surroundings): Promise<void>;
  end(surroundings: Surroundings): Promise<void>;
}

/** To test one more fault, add it here. */
const FAULTS: readonly Fault[] = [
  {
    name: "the worker's connections killed",
    begin: (all) => command(all, KILL_ALL),
    end: () => Promise.resolve(),
  },
  {
    name: "Redis killed and restarted",
    begin: ({ server }) => server.crash(),
    end: ({ server }) => server.restart(),
  },
  {
    name: "Redis restarted and loading its data for long",
    begin: async ({ server, admin }) => {
      await admin.eval("for n = 1, ARGV[1] do redis.call('SET', 'record:' .. n, n) end", 0, RECORDS_FOR_LONG);
      await server.crash();
    },
    end: ({ server }) => server.restart(),
  },
  {
    name: "Redis with another password for a while",
    begin: (all) => command(all, "CONFIG SET requirepass other", KILL_ALL),
    end: (all) => command(all, "CONFIG SET requirepass ''"),
  },
  {
    name: "the worker's user without any rights for a while",
    begin: (all) =>
      command(
        all,
        "ACL SETUSER admin on nopass allcommands allkeys allchannels",
        "AUTH admin any",
        "ACL SETUSER default off",
        KILL_ALL,
      ),
    end: (all) => command(all, "ACL SETUSER default on"),
  },
  {
    name: "Redis at maxclients for a while",
    begin: (all) => command(all, "CONFIG SET maxclients 1", KILL_ALL),
    end: (all) => command(all, "CONFIG SET maxclients 1000"),
  },
  {
    name: "Redis a replica for a while",
    begin: (all) => command(all, "REPLICAOF 127.0.0.1 1"),
    end: (all) => command(all, "REPLICAOF NO ONE"),
    refusal: "READONLY",
  },
  {
    name: "Redis short of replicas for a while",
    begin: (all) => command(all, "CONFIG SET min-replicas-to-write 1"),
    end: (all) => command(all, "CONFIG SET min-replicas-to-write 0"),
    refusal: "NOREPLICAS",
    refusesScriptsSince: 7,
  },
  {
    name: "scripts forbidden for a while",
    begin: (all) => command(all, "ACL SETUSER default -eval -evalsha"),
    end: (all) => command(all, "ACL SETUSER default +eval +evalsha"),
    refusal: "NOPERM",
  },
];

test.each(FAULTS)("an outcome is booked once, with $name", async (fault) => {
  const { begin, end } = fault;
  const { provider, worker, states, ...surroundings } = await setup();
  const refusal = await refusalOf(fault, surroundings);
  await begin(surroundings);
  await pause(FAULT_MS);
  await end(surroundings);
  await eventually(async () => expect(await states()).toEqual(new Set(["delivered"])), BOOKED_WITHIN_MS);
  expect(provider.posts).toHaveLength(JOBS);
  expect(worker.logs.filter(({ event }) => event === "attempt_failed")).toEqual([]);
  await eventually(() => expect(bookingLines(worker)).toMatchObject(linesOf(refusal)));
});

async function refusalOf(
  { refusal, refusesScriptsSince = 0 }: Fault,
  { admin }: Surroundings,
): Promise<string | undefined> {
  const [, major = 0] = /redis_version:(\d+)/.exec(await admin.info("server")) ?? [];
  return Number(major) < refusesScriptsSince ? undefined : refusal;
}

function bookingLines({ logs }: AppProcess): unknown[] {
  return logs.filter(({ event }) => String(event).startsWith("booking_"));
}

/** Each line is logged once, however many attempts wait. */
function linesOf(refusal: string | undefined): unknown[] {
  return refusal === undefined
    ? []
    : [
        { level: "warn", event: "booking_refused", err: { message: expect.stringContaining(refusal) } },
        { level: "info", event: "booking_resumed" },
      ];
}

test("a full Redis books outcomes, hands out jobs and drops their texts", async () => {
  const { provider, worker, states, counts, ...surroundings } = await setup(10);
  await command(surroundings, "CONFIG SET maxmemory 1");
  await eventually(async () => expect(await states()).toEqual(new Set(["delivered"])));
  expect(provider.posts).toHaveLength(JOBS);
  expect(await counts()).toMatchObject({ waiting: 0, active: 0, delayed: 0 });
  expect(worker.logs.filter(({ event }) => event === "attempt_failed")).toEqual([]);
});
