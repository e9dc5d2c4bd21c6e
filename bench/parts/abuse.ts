/**
 * Measures what one publisher that takes all it can costs another one, and the process. The other one's injections are timed
 * beside each abuse and, on the same gateway, before it. Callers, the abuser and the one that asks for readiness are processes
 * of their own. Memory is the most that the process had since its start, with the settings of the image.
 */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ACKNOWLEDGE_PATH, API_KEY_HEADER, INJECTION_PATH, publisherIdSchema } from "@adrelay/contract";
import { containerMemorySettings } from "@adrelay/dev-servers";
import { TEST_INJECTION } from "@adrelay/testkit";
import { ABUSES, type AbusePlan, abusedSchema } from "../abuse-plan.ts";
import { fillQueued } from "../backlog.ts";
import { atMost, type Figure } from "../figures.ts";
import { freshPrefix, type LoadPlan, type LoadRound, runLoad, startLoadGenerator } from "../load.ts";
import { peakRssBytesOf, startChild } from "../processes.ts";
import { type Bench, inTurns, WARMUP_MS } from "../rounds.ts";
import {
  type BenchRedis,
  type Served,
  type Surroundings,
  startBenchRedis,
  startGateway,
  startProvider,
  startWorker,
} from "../sides.ts";

/** How many requests an abuse has in a round. */
const COUNTS: Readonly<Record<AbusePlan["abuse"], number>> = {
  "long injections": 1000,
  "stopped uploads": 1000,
  "waiting acknowledgments": 400,
  "small requests": 15_000,
};
/** Large bodies in the queue for each of the three troubled providers. */
const QUEUED = 334;
const TROUBLES = ["hanging", "slow", "garbage"] as const;
const MEGABYTE_TEXT = "x".repeat(1_000_000);
const CALM = "calm";
const GREEDY = "greedy";
const RATE_PER_SECOND = 50;
const CONNECTIONS = 16;
/** With at most a hundred answers in a round, p99 is the longest. */
const READINESS_PER_SECOND = 4;
/** The quotas of rates as they are by default, unlike in other parts. */
const DEFAULT_RATES = {
  QUOTA_REQUESTS_PER_SECOND: "1000",
  QUOTA_BURST: "2000",
  QUOTA_BYTES_PER_SECOND: "8MB",
  QUOTA_BYTES_BURST: "16MB",
};
const ADDED_MAX_MS = 50;
const PROMISED_MS = 1000;
const MEMORY_MAX_MIB = 256;
const MEMORY_MAX_MB = Math.floor((MEMORY_MAX_MIB * 1024 * 1024) / 1e6);

interface AbuseRound {
  /** Undefined for the worker, which is measured beside the abuse only. */
  readonly alone: LoadRound | undefined;
  readonly beside: LoadRound;
  readonly readiness: LoadRound;
  readonly peakBytes: number;
}

export async function measureAbuse(bench: Bench): Promise<Figure[]> {
  await using calm = await startProvider(bench);
  await using troubled = await startProvider(bench);
  const providers = { calm, troubled };
  const figures: Figure[] = [];
  for (const abuse of ABUSES) {
    const { rounds } = await inTurns(bench.rounds, { rounds: () => abuseGateway(bench, providers, abuse) });
    figures.push(...figuresOf("gateway", abuse, rounds));
  }
  const { rounds } = await inTurns(bench.rounds, { rounds: () => abuseWorker(bench, providers) });
  return [...figures, ...figuresOf("worker", `${TROUBLES.length * QUEUED} queued bodies of 1 MB`, rounds)];
}

interface Providers {
  readonly calm: Served;
  readonly troubled: Served;
}

async function abuseGateway(
  bench: Bench,
  providers: Providers,
  abuse: AbusePlan["abuse"],
): Promise<AbuseRound> {
  await using redis = await startBenchRedis();
  await using gateway = await startGateway(bench, placeOf(bench, redis, providers));
  await using callers = await startLoadGenerator(bench.folder);
  await using poller = await startLoadGenerator(bench.folder);
  await using abuser = await startChild({
    name: "abuser",
    script: "bench/abuser.ts",
    env: {},
    folder: bench.folder,
  });
  const alone = await runLoad(callers, calmInjections(gateway, bench.roundMs), {});
  const answered = abuser.receive(abusedSchema);
  const plan = { abuse, origin: gateway.origin, key: keyOf(GREEDY), count: COUNTS[abuse] };
  abuser.send({ ...plan, durationMs: WARMUP_MS + bench.roundMs });
  const [beside, readiness] = await Promise.all([
    runLoad(callers, calmInjections(gateway, bench.roundMs), {}),
    runLoad(poller, readinessPlan(gateway, bench.roundMs), {}),
  ]);
  const peakBytes = peakRssBytesOf(gateway.pid);
  bench.say(
    `${describe(abuse, { alone, beside, readiness, peakBytes })}, ${JSON.stringify((await answered).answers)}`,
  );
  return { alone, beside, readiness, peakBytes };
}

async function abuseWorker(bench: Bench, providers: Providers): Promise<AbuseRound> {
  // Without its file: a disk that takes a gigabyte slowly would be what is measured.
  await using redis = await startBenchRedis("no file");
  for (const trouble of TROUBLES) {
    const publisher = publisherIdSchema.parse(trouble);
    const filling = { redisUrl: redis.url, prefix: freshPrefix(), count: QUEUED, publisher };
    await fillQueued({ ...filling, text: MEGABYTE_TEXT });
  }
  const place = placeOf(bench, redis, providers);
  await using gateway = await startGateway(bench, place);
  await using callers = await startLoadGenerator(bench.folder);
  await using poller = await startLoadGenerator(bench.folder);
  await using worker = await startWorker(bench, place);
  const [beside, readiness] = await Promise.all([
    runLoad(callers, calmAcknowledgments(gateway, bench.roundMs), {}),
    runLoad(poller, readinessPlan(worker, bench.roundMs), {}),
  ]);
  const peakBytes = peakRssBytesOf(worker.pid);
  bench.say(describe("queued bodies", { alone: undefined, beside, readiness, peakBytes }));
  return { alone: undefined, beside, readiness, peakBytes };
}

function describe(abuse: string, { alone, beside, readiness, peakBytes }: AbuseRound): string {
  const added = alone === undefined ? "" : ` (${alone.p99Ms.toFixed(0)} ms before)`;
  return `abuse, ${abuse}: p99 ${beside.p99Ms.toFixed(0)} ms${added}, readiness ${readiness.p99Ms.toFixed(0)} ms, ${(peakBytes / 1e6).toFixed(0)} MB, ${beside.failures} of ${beside.sent} failed`;
}

function figuresOf(process: "gateway" | "worker", abuse: string, rounds: readonly AbuseRound[]): Figure[] {
  const figure = (what: string, unit: string, value: (round: AbuseRound) => number): Figure => ({
    part: "abuse",
    what: `${what}, ${abuse}`,
    unit,
    ours: rounds.map(value),
  });
  const p99 = figure("p99 of the other publisher", "ms", ({ beside }) => beside.p99Ms);
  const added = figure(
    "p99 added for the other publisher",
    "ms",
    ({ alone, beside }) => beside.p99Ms - (alone?.p99Ms ?? 0),
  );
  return [
    process === "worker"
      ? { ...p99, what: `acceptance to delivery, ${p99.what}`, promise: atMost("value", PROMISED_MS) }
      : { ...added, promise: atMost("value", ADDED_MAX_MS) },
    figure("share that failed", "%", ({ beside }) => (beside.failures * 100) / beside.sent),
    {
      ...figure(`longest answer of the ${process}'s readiness`, "ms", ({ readiness }) => readiness.p99Ms),
      promise: atMost("value", PROMISED_MS),
    },
    {
      ...figure(`most memory of the ${process}`, "MB", ({ peakBytes }) => peakBytes / 1e6),
      promise: atMost("value", MEMORY_MAX_MB),
    },
  ];
}

const keyOf = (publisher: string) => `key-of-${publisher}`;

/** All publishers have provider accounts of their own. */
function placeOf({ folder }: Bench, redis: BenchRedis, { calm, troubled }: Providers): Surroundings {
  const publisher = (id: string, url: string) => ({
    id,
    name: id,
    key_sha256: [createHash("sha256").update(keyOf(id)).digest("hex")],
    provider: { url, api_key_env: "KEY_OF_PROVIDER" },
  });
  const publishers = [
    publisher(CALM, calm.origin),
    // A path of its own is an account of its own.
    publisher(GREEDY, `${troubled.origin}/hanging/greedy`),
    ...TROUBLES.map((trouble) => publisher(trouble, `${troubled.origin}/${trouble}`)),
  ];
  const file = join(folder, "publishers-in-abuse.yaml");
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ publishers }));
  const settings = { API_KEYS: "", PUBLISHERS_FILE: file, KEY_OF_PROVIDER: "key", REDIS_DURABILITY: "warn" };
  const env = { ...settings, ...DEFAULT_RATES, ...containerMemorySettings(MEMORY_MAX_MIB) };
  return { redisUrl: redis.url, providerUrl: calm.origin, env };
}

type CalmPlan = Omit<LoadPlan, "kind">;

function calmInjections({ origin }: Served, durationMs: number): CalmPlan {
  return {
    origin,
    path: INJECTION_PATH,
    headers: { [API_KEY_HEADER]: keyOf(CALM), "content-type": "application/json" },
    connections: CONNECTIONS,
    ratePerSecond: RATE_PER_SECOND,
    body: { kind: "fixed", text: JSON.stringify(TEST_INJECTION) },
    status: 200,
    length: { kind: "time", warmupMs: WARMUP_MS, durationMs },
  };
}

function calmAcknowledgments(gateway: Served, durationMs: number): CalmPlan {
  const plan = calmInjections(gateway, durationMs);
  const body = { kind: "acknowledgments", prefix: freshPrefix() } as const;
  return { ...plan, path: ACKNOWLEDGE_PATH, headers: { ...plan.headers, prefer: "wait=5" }, body };
}

function readinessPlan({ opsUrl }: { readonly opsUrl: string }, durationMs: number): CalmPlan {
  return {
    origin: opsUrl,
    method: "GET",
    path: "/readyz",
    headers: {},
    connections: 1,
    ratePerSecond: READINESS_PER_SECOND,
    body: { kind: "fixed", text: "" },
    status: 200,
    length: { kind: "time", warmupMs: WARMUP_MS, durationMs },
  };
}
