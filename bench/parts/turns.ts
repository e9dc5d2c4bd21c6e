/**
 * Measures how long a publisher with a healthy provider waits while another one, whose provider hangs, has 10,000
 * acknowledgments in the queue. A caller waits for the outcome of each acknowledgment, so its latency is the time from
 * acceptance to delivery, and a little more. Nothing is warmed up: the worker begins with the backlog when the stream begins.
 */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ACKNOWLEDGE_PATH, API_KEY_HEADER, publisherIdSchema } from "@adrelay/contract";
import { fillQueued } from "../backlog.ts";
import { atMost, type Figure } from "../figures.ts";
import { freshPrefix, type LoadPlan, type LoadRound, runLoad, startLoadGenerator } from "../load.ts";
import { type Bench, inTurns } from "../rounds.ts";
import { type Served, startBenchRedis, startGateway, startProvider, startWorker } from "../sides.ts";

const BACKLOG = 10_000;
const STUCK = publisherIdSchema.parse("stuck");
const HEALTHY = publisherIdSchema.parse("healthy");
const KEY_OF_CALLER = "key-of-the-caller";
const RATE_PER_SECOND = 100;
/** More than are waited for at the same time, unless deliveries are late. */
const CONNECTIONS = 100;

export async function measureTurns(bench: Bench): Promise<Figure[]> {
  await using provider = await startProvider(bench);
  const rounds = await inTurns(bench.rounds, {
    alone: () => runRound(bench, provider, 0),
    beside: () => runRound(bench, provider, BACKLOG),
  });
  const figure = (what: string, unit: string, value: (round: LoadRound) => number): Figure => ({
    part: "turns",
    what: `${what}, beside ${BACKLOG} of another publisher`,
    unit,
    ours: rounds.beside.map(value),
    against: { name: "no backlog", values: rounds.alone.map(value) },
  });
  return [
    figure("acceptance to delivery, p50", "ms", ({ p50Ms }) => p50Ms),
    { ...figure("acceptance to delivery, p99", "ms", ({ p99Ms }) => p99Ms), promise: atMost("value", 1000) },
    figure("share not delivered within 5 s", "%", ({ failures, sent }) => (100 * failures) / sent),
  ];
}

async function runRound(bench: Bench, provider: Served, backlog: number): Promise<LoadRound> {
  await using redis = await startBenchRedis();
  await fillQueued({ redisUrl: redis.url, prefix: freshPrefix(), count: backlog, publisher: STUCK });
  const env = { API_KEYS: "", PUBLISHERS_FILE: writePublishers(bench, provider), KEY_OF_PROVIDER: "key" };
  const place = { redisUrl: redis.url, providerUrl: provider.origin, env };
  await using gateway = await startGateway(bench, place);
  await using generator = await startLoadGenerator(bench.folder);
  await using _worker = await startWorker(bench, place);
  const round = await runLoad(generator, streamPlan(gateway, bench.roundMs), {});
  const [p50, p99] = [round.p50Ms, round.p99Ms].map((ms) => ms.toFixed(1));
  bench.say(`turns beside ${backlog}: p50 ${p50} ms, p99 ${p99} ms, ${round.failures} of ${round.sent} late`);
  return round;
}

/** Two publishers, each with a provider account of its own. */
function writePublishers({ folder }: Bench, { origin }: Served): string {
  const publisher = (id: string, key: string, url: string) => ({
    id,
    name: id,
    key_sha256: [createHash("sha256").update(key).digest("hex")],
    provider: { url, api_key_env: "KEY_OF_PROVIDER" },
  });
  const publishers = [
    publisher(STUCK, "key-of-nobody", `${origin}/hanging`),
    publisher(HEALTHY, KEY_OF_CALLER, origin),
  ];
  const file = join(folder, "publishers-in-turns.yaml");
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ publishers }));
  return file;
}

function streamPlan({ origin }: Served, durationMs: number): Omit<LoadPlan, "kind"> {
  return {
    origin,
    path: ACKNOWLEDGE_PATH,
    headers: { [API_KEY_HEADER]: KEY_OF_CALLER, "content-type": "application/json", prefer: "wait=5" },
    connections: CONNECTIONS,
    ratePerSecond: RATE_PER_SECOND,
    body: { kind: "acknowledgments", prefix: freshPrefix() },
    status: 200,
    length: { kind: "time", warmupMs: 0, durationMs },
  };
}
