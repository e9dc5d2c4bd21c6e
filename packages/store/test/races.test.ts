/**
 * Everything at once on a real Redis: two workers deliver, while operators replay, discard, erase and adopt, the sweep and the
 * recount run, and Redis is full again and again. It guards against a counter that drifts, a text that outlives its erasure,
 * and a job without an entry that needs it.
 */
import { type AdResponseId, type PublisherId, publisherIdSchema } from "@adrelay/contract";
import { eventually, makeRandom, type Random } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterEach, expect, test } from "vitest";
import type { AttemptResult, DueAttempt } from "../src/delivery/job-completer.ts";
import { Recount } from "../src/maintenance/recount.ts";
import {
  countEntryBytes,
  EVERYTHING,
  jobOf,
  LONG_MS,
  newId,
  openTestRedis,
  openTestStore,
  type StoreFixture,
  settlementOf,
  usedBytes,
} from "./store-fixture.ts";

const { redis, server } = await openTestRedis();
const acme = publisherIdSchema.parse("acme");
const globe = publisherIdSchema.parse("globe");
const SEEDS = Number(process.env["ADRELAY_RACES"] ?? 2);
const IDS = 240;
const OPERATIONS = 200;
/** Above this a worker leaves the body in Redis until its attempt. */
const LONG_BODY = 10_000;

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  await redis.config("SET", "maxmemory", 0);
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

const connect = (maxRetriesPerRequest: number | null = 0) => {
  const connection = new Redis(server.url, { maxRetriesPerRequest });
  stops.push(async () => connection.disconnect());
  return connection;
};

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
/** Full is what refuses; everything else must work. */
const unlessFull = (work: Promise<unknown>) =>
  work.catch((error: unknown) => {
    if (!String(error).includes("OOM")) {
      throw error;
    }
  });

interface Race extends StoreFixture {
  readonly random: Random;
  readonly ids: AdResponseId[];
  readonly erased: Set<AdResponseId>;
  /** A recount mends what a race has broken. So only half of the races have recounts. */
  readonly hasRecounts: boolean;
  isOver: boolean;
}

function openRace(seed: number): Race {
  const fixture = openTestStore(connect(), { waitingRedis: connect(null) });
  const random = makeRandom(`races ${seed}`);
  const race: Race = {
    ...fixture,
    random,
    ids: [],
    erased: new Set(),
    hasRecounts: seed % 2 === 0,
    isOver: false,
  };
  const other = openTestStore(connect(), { waitingRedis: connect(null), partition: fixture.partition });
  for (const { store } of [fixture, other]) {
    const attempt = (due: DueAttempt) => attemptOnce(race, due);
    store.deliveries.start({ concurrency: 10, attemptTimeoutMs: 1000, attempt, onSettled: () => {} });
    stops.push(async () => {
      await store.deliveries.stop();
      await store.stop();
    });
  }
  return race;
}

async function attemptOnce(
  { random, isOver }: Race,
  { job, entry, payload }: DueAttempt,
): Promise<AttemptResult> {
  const body = await payload.load();
  if (body === undefined) {
    return { kind: "payload_gone" };
  }
  await pause(random.integer(0, 4));
  const event = isOver
    ? "deliver"
    : random.pick(["deliver", "refuse", "retry", "retry", "die", "die"] as const);
  const settlement = settlementOf(job.adResponseId, event, { attemptsBefore: entry.attempts });
  const soon = "next" in settlement ? { next: { kind: "after_delay", delayMs: 5 } as const } : {};
  return {
    kind: "made",
    settlement: { ...settlement, ...soon },
    isProbe: false,
    trace: { own: undefined, recorded: undefined },
  };
}

async function acceptAll({ random, ids, injections, acknowledgments }: Race): Promise<void> {
  for (let made = 0; made < IDS; made += 1) {
    const id = newId();
    const publisher: PublisherId = random.pick([acme, globe]);
    if (random.chance(0.7)) {
      await unlessFull(
        injections.record({ id, publisher, outcome: "ok", deadlineMs: random.pick([1, LONG_MS]) }),
      );
    }
    const body = `{"text":"secret of ${id}","more":"${"x".repeat(random.chance(0.2) ? LONG_BODY : 10)}"}`;
    ids.push(id);
    await unlessFull(
      acknowledgments.accept({ job: { ...jobOf(id), publisher, body }, textHash: `hash-${id}` }),
    );
    await pause(random.integer(0, 3));
  }
}

async function operate(race: Race): Promise<void> {
  const { random, ids, erased, deadLetters, erasures, parts } = race;
  for (let done = 0; done < OPERATIONS; done += 1) {
    const id = ids[random.integer(0, Math.max(0, ids.length - 1))] ?? newId();
    switch (random.pick(["replay", "replay", "discard", "erase"] as const)) {
      case "replay":
        await deadLetters.replay(id, "alice");
        break;
      case "discard":
        await deadLetters.discard(id, "alice", "gone stale");
        break;
      case "erase": {
        const { kind } = await erasures.erase(id, { by: "alice", reason: "the user asked" });
        if (kind === "erased" || kind === "erased_before") {
          erased.add(id);
          // At once, also while an attempt holds the job.
          const data = await redis.hget(parts.queue.payloadKey(id), "data");
          expect(data ?? "").not.toContain("secret of");
        }
        break;
      }
    }
    await pause(random.integer(0, 4));
  }
}

async function adopt({ random, adoptions }: Race): Promise<void> {
  for (let done = 0; done < 20; done += 1) {
    const [from = acme, to = globe] = random.shuffle([acme, globe]);
    for (const state of ["dead", "queued", "awaiting"] as const) {
      await adoptions.adoptBatch({ from, to, by: "alice", limit: 20, place: { state, after: undefined } });
    }
    await pause(random.integer(1, 60));
  }
}

async function changeInBulk({ random, replays, discards, maintenance }: Race): Promise<void> {
  for (let done = 0; done < 20; done += 1) {
    const filter = { ...EVERYTHING, publisher: random.pick([acme, globe]) };
    await (random.chance(0.7)
      ? replays.start({ filter, by: "alice", ratePerSecond: 1000, stop: undefined })
      : discards.start({ filter, by: "alice", why: "the campaign has ended" }));
    await maintenance.runBulkChanges();
    await pause(random.integer(1, 60));
  }
}

async function maintain(race: Race): Promise<void> {
  const { random, maintenance, parts } = race;
  const recount = new Recount(parts);
  while (!race.isOver) {
    await unlessFull(maintenance.sweep(random.pick([50, LONG_MS])));
    await maintenance.reconcile();
    await (race.hasRecounts ? recount.runRound(0) : undefined);
    await maintenance.runBulkChanges();
    await pause(random.integer(0, 10));
  }
}

async function fillRedis(race: Race): Promise<void> {
  const { random } = race;
  while (!race.isOver) {
    await redis.config("SET", "maxmemory", "1");
    await pause(random.integer(1, 100));
    await redis.config("SET", "maxmemory", "0");
    await pause(random.integer(1, 200));
  }
}

/** The others go on until this has ended. */
async function raceOf(race: Race): Promise<void> {
  try {
    await Promise.all([acceptAll(race), operate(race), operate(race), adopt(race), changeInBulk(race)]);
  } finally {
    race.isOver = true;
  }
}

test.each(
  Array.from({ length: SEEDS }, (_, at) => Number(process.env["ADRELAY_SEED"] ?? Date.now() % 1e6) + at),
)(
  "whatever races, counters agree and erased texts are gone (seed %d)",
  async (seed) => {
    const race = openRace(seed);
    await Promise.all([raceOf(race), maintain(race), fillRedis(race)]);
    await settleAll(race);
    await expectAgreement(race);
  },
  60_000,
);

async function settleAll({ maintenance, snapshot, queueDepths, parts }: Race): Promise<void> {
  await eventually(async () => {
    await maintenance.sweep(LONG_MS);
    await maintenance.runBulkChanges();
    const { states } = await snapshot();
    const queued = states.filter(({ label, value }) => label === "queued" && value !== 0);
    const { waiting, active, delayed } = await queueDepths();
    expect({ queued, waiting, active, delayed }).toEqual({ queued: [], waiting: 0, active: 0, delayed: 0 });
    expect(await redis.zcard(parts.keys.outbox)).toBe(0);
  }, 20_000);
}

async function expectAgreement(race: Race): Promise<void> {
  const used = async () => withoutZeros(await usedBytes(race));
  const inEntries = await countEntryBytes(redis, race);
  expect(await used()).toEqual(inEntries);
  const recount = new Recount(race.parts);
  do {
    await recount.runRound(0);
  } while ((await redis.hget(race.key("gauges:recount"), "running")) !== "0");
  expect(await used()).toEqual(inEntries);
  expect(await stateCounts(race)).toEqual(await countEntryStates(race));
  await expectTextsOfDeadOnly(race);
}

const withoutZeros = (counts: Record<string, number>) =>
  Object.fromEntries(Object.entries(counts).filter(([, value]) => value !== 0));

async function stateCounts({ snapshot }: Race): Promise<Record<string, number>> {
  const { states } = await snapshot();
  return withoutZeros(
    Object.fromEntries(states.map(({ publisher, label, value }) => [`${publisher}|${label}`, value])),
  );
}

async function countEntryStates({ key }: Race): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const entryKey of await redis.keys(key("e:*"))) {
    const [state, owner] = await redis.hmget(entryKey, "s", "p");
    sums[`${owner}|${state}`] = (sums[`${owner}|${state}`] ?? 0) + 1;
  }
  return sums;
}

/** Each text that is left is that of a dead letter, and none was erased. */
async function expectTextsOfDeadOnly({ key, erased, find }: Race): Promise<void> {
  const withText: string[] = [];
  for (const name of await redis.keys(key("*"))) {
    if ((await redis.type(name)) === "hash") {
      const text = JSON.stringify(await redis.hgetall(name));
      withText.push(...[...text.matchAll(/secret of ([0-9a-f-]{36})/g)].map(([, id = ""]) => id));
    }
  }
  expect(withText.filter((id) => erased.has(id as AdResponseId))).toEqual([]);
  const states = await Promise.all(withText.map(async (id) => (await find(id as AdResponseId))?.state));
  expect(states.filter((state) => state !== "dead")).toEqual([]);
}
