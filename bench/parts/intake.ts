/**
 * Compares acknowledgments per second and their latency with the naive server. Each round starts new processes of each
 * side, with their own Redis. The gateway is measured with unknown ids (UNKNOWN_ACK=accept, the default) and with the
 * ids of recorded injections. With unknown ids it is also compared with itself without quotas.
 */
import { ACKNOWLEDGE_PATH, API_KEY_HEADER } from "@adrelay/contract";
import { TEST_API_KEY } from "@adrelay/testkit";
import { fillAwaiting } from "../backlog.ts";
import { atLeast, atMost, type Figure } from "../figures.ts";
import { freshPrefix, type LoadPlan, type LoadRound, runLoad, startLoadGenerator } from "../load.ts";
import { rssBytesOf } from "../processes.ts";
import { type Bench, COLD_WARMUP_MS, inTurns } from "../rounds.ts";
import { type Appendfsync, type Served, startBenchRedis, startGateway, startNaiveServer } from "../sides.ts";

const INTAKE_CONNECTIONS = 64;
/** More than either side can accept, so that the recorded injections don't run out. */
const RATE_MAX_PER_SECOND = 20_000;
/** Nothing listens there. The gateway does not call the provider for acknowledgments. */
export const NO_PROVIDER = "http://127.0.0.1:9";
const MS_PER_SECOND = 1000;
const NO_QUOTAS = {
  QUOTA_REQUESTS_PER_SECOND: "off",
  QUOTA_BURST: "off",
  QUOTA_BYTES_PER_SECOND: "off",
  QUOTA_BYTES_IN_FLIGHT: "off",
  QUOTA_QUEUED_BYTES: "off",
  QUOTA_DEAD_BYTES: "off",
  QUOTA_UNKNOWN_BYTES: "off",
};

type Ids = "unknown" | "known";
type Side =
  | { readonly kind: "naive" }
  | { readonly kind: "gateway"; readonly ids: Ids; readonly quotas?: "off" };

interface IntakeRound extends LoadRound {
  readonly rssBytes: number;
}

export async function measureIntake(bench: Bench): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const appendfsync of ["everysec", "always"] as const) {
    const rounds = await inTurns(bench.rounds, {
      naive: () => runRound(bench, appendfsync, { kind: "naive" }),
      unknown: () => runRound(bench, appendfsync, { kind: "gateway", ids: "unknown" }),
      known: () => runRound(bench, appendfsync, { kind: "gateway", ids: "known" }),
      unlimited: () => runRound(bench, appendfsync, { kind: "gateway", ids: "unknown", quotas: "off" }),
    });
    figures.push(...compare(`${appendfsync}, unknown ids`, rounds.unknown, rounds.naive));
    figures.push(...compare(`${appendfsync}, known ids`, rounds.known, rounds.naive));
    figures.push(...compareQuotas(appendfsync, rounds.unknown, rounds.unlimited));
  }
  return figures;
}

async function runRound(bench: Bench, appendfsync: Appendfsync, side: Side): Promise<IntakeRound> {
  await using redis = await startBenchRedis(appendfsync);
  const place = { redisUrl: redis.url, providerUrl: NO_PROVIDER };
  const prefix = freshPrefix();
  if (side.kind === "gateway" && side.ids === "known") {
    const count = (RATE_MAX_PER_SECOND * (bench.roundMs + COLD_WARMUP_MS)) / MS_PER_SECOND;
    await fillAwaiting({ redisUrl: redis.url, prefix, count });
  }
  await using server = await (side.kind === "naive"
    ? startNaiveServer(bench, place)
    : startGateway(bench, side.quotas === "off" ? { ...place, env: NO_QUOTAS } : place));
  await using generator = await startLoadGenerator(bench.folder);
  const round = await runLoad(generator, intakePlan(server, bench.roundMs, prefix), {
    server: server.pid,
    redis: redis.pid,
  });
  const what =
    side.kind === "naive" ? "naive server" : `gateway, ${side.ids} ids${side.quotas ? ", no quotas" : ""}`;
  bench.say(
    `intake ${appendfsync}, ${what}: ${round.ratePerSecond.toFixed(0)}/s, p99 ${round.p99Ms.toFixed(1)} ms`,
  );
  return { ...round, rssBytes: rssBytesOf(server.pid) };
}

/** Load of acknowledgments whose callers don't wait for the outcome. */
export function intakePlan({ origin }: Served, durationMs: number, prefix: string): Omit<LoadPlan, "kind"> {
  return {
    origin,
    path: ACKNOWLEDGE_PATH,
    headers: { [API_KEY_HEADER]: TEST_API_KEY, "content-type": "application/json", prefer: "respond-async" },
    connections: INTAKE_CONNECTIONS,
    body: { kind: "acknowledgments", prefix },
    status: 201,
    length: { kind: "time", warmupMs: COLD_WARMUP_MS, durationMs },
  };
}

function compareQuotas(
  appendfsync: Appendfsync,
  limited: readonly IntakeRound[],
  unlimited: readonly IntakeRound[],
): Figure[] {
  const figure = (what: string, unit: string, value: (round: IntakeRound) => number): Figure => ({
    part: "intake",
    what: `${what} with quotas, ${appendfsync}`,
    unit,
    ours: limited.map(value),
    against: { name: "without quotas", values: unlimited.map(value) },
  });
  return [
    { ...figure("acknowledgments", "/s", (round) => round.ratePerSecond), promise: atLeast("ratio", 0.97) },
    figure("CPU of the server per acknowledgment", "µs", cpuUs("server")),
    figure("CPU of Redis per acknowledgment", "µs", cpuUs("redis")),
  ];
}

/** The CPU time of a process per acknowledgment. */
function cpuUs(process: string): (round: IntakeRound) => number {
  return (round) => ((round.cpuMs[process] ?? 0) * MS_PER_SECOND) / round.count;
}

function compare(name: string, ours: readonly IntakeRound[], naive: readonly IntakeRound[]): Figure[] {
  const figure = (what: string, unit: string, value: (round: IntakeRound) => number): Figure => ({
    part: "intake",
    what: `${what}, ${name}`,
    unit,
    ours: ours.map(value),
    against: { name: "naive server", values: naive.map(value) },
  });
  return [
    { ...figure("acknowledgments", "/s", (round) => round.ratePerSecond), promise: atLeast("ratio", 1) },
    figure("p50", "ms", (round) => round.p50Ms),
    { ...figure("p99", "ms", (round) => round.p99Ms), promise: atMost("ratio", 1.2) },
    figure("CPU of the server per acknowledgment", "µs", cpuUs("server")),
    figure("CPU of Redis per acknowledgment", "µs", cpuUs("redis")),
    figure(
      "the load generator's share of a core",
      "",
      (round) => (round.cpuMs["load"] ?? 0) / round.durationMs,
    ),
    figure("share that failed", "%", ({ failures, sent }) => (failures * 100) / sent),
    figure("RSS of the server at the end", "MB", (round) => round.rssBytes / 1e6),
  ];
}
