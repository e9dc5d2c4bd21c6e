/**
 * Guards against losing money or counting it twice: 500 acknowledgments while SIGKILL hits gateway, worker, Redis and
 * ad server at random. Every accepted one is delivered, the ad server counts it once, and the counters balance.
 */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AdServerProcess,
  eventually,
  fetchMetrics,
  pause,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  startAdServer,
  startRelayStack,
  sumOf,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";

const ACKNOWLEDGMENTS = 500;
const LANES = 10;
const KILLS = 12;
/** How long a caller tries again. On a busy machine the same process may be killed several times in a row. */
const PATIENCE_MS = 90_000;
const SEED = Number(process.env["ADRELAY_SEED"] ?? Date.now() % 1_000_000);

let redis: TestRedis;
let adServerRedis: TestRedis;
let adServer: AdServerProcess;
let stack: RelayStack;
let caller: RelayCaller;

beforeAll(async () => {
  [redis, adServerRedis] = await Promise.all([startTestRedis(), startTestRedis()]);
  adServer = await startAdServer(adServerRedis);
  stack = await startRelayStack({ redis, providerUrl: adServer.url });
  caller = relayCaller(stack.gatewayUrl);
});
afterAll(async () => {
  await stack.stop();
  await adServer.stop();
  await Promise.all([redis.dispose(), adServerRedis.dispose()]);
});

/** Park and Miller's generator. The same seed gives the same kills and waits. */
function makeRandom(seed: number): () => number {
  let state = (seed % 2_147_483_646) + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/** Gets one ad and acknowledges it. Each call is repeated until it gets a 2xx. */
async function acknowledgeOne(text: string): Promise<string> {
  const id = await eventually(async () => {
    const answer = await caller.inject();
    expect(answer.status).toBe(200);
    return String(answer.body["ad_response_id"]);
  }, PATIENCE_MS);
  await eventually(async () => {
    const answer = await caller.acknowledge(id, text, { headers: { Prefer: "respond-async" } });
    expect([200, 201]).toContain(answer.status);
  }, PATIENCE_MS);
  return id;
}

async function killAtRandom(random: () => number, isDone: () => boolean): Promise<string[]> {
  const killed: string[] = [];
  const victims = [
    ["gateway", () => stack.crash("gateway").then(() => stack.start("gateway"))],
    ["worker", () => stack.crash("worker").then(() => stack.start("worker"))],
    ["redis", () => redis.crash().then(() => redis.restart())],
    ["ad-server", () => adServer.crash().then(() => adServer.start())],
    ["ad-server's redis", () => adServerRedis.crash().then(() => adServerRedis.restart())],
  ] as const;
  for (let kill = 0; kill < KILLS && !isDone(); kill += 1) {
    await pause(100 + random() * 400);
    const [name, run] = victims[Math.floor(random() * victims.length)] ?? victims[0];
    killed.push(name);
    await run();
  }
  return killed;
}

test(`random kills lose and double none of ${ACKNOWLEDGMENTS} acknowledgments (seed ${SEED})`, async () => {
  const accepted: string[] = [];
  let next = 0;
  const lane = async () => {
    for (let at = next; at < ACKNOWLEDGMENTS; at = next) {
      next += 1;
      accepted.push(await acknowledgeOne(`The Stridewell Tempo 3 (ad), answer ${at}`));
      await pause(60);
    }
  };
  const [killed] = await Promise.all([
    killAtRandom(makeRandom(SEED), () => accepted.length === ACKNOWLEDGMENTS),
    ...Array.from({ length: LANES }, lane),
  ]);
  console.log(`seed ${SEED}: killed ${killed.join(", ")}`);
  expect(accepted).toHaveLength(ACKNOWLEDGMENTS);

  const samples = await eventually(async () => {
    const now = await fetchMetrics(stack.gatewayOpsUrl);
    // Redis may have been killed last. Until it is back, the counters are missing.
    expect(sumOf(now, "adrelay_acknowledgments")).toBeGreaterThanOrEqual(ACKNOWLEDGMENTS);
    expect(sumOf(now, "adrelay_acknowledgments", { state: "queued" })).toBe(0);
    return now;
  }, 60_000);
  const answers = await Promise.all(accepted.map((id) => caller.lookUp(id)));
  expect(answers.filter(({ body }) => body["state"] !== "delivered")).toEqual([]);
  const theirs = await Promise.all(accepted.map((id) => adServer.acknowledgmentOf(id)));
  expect(theirs.filter(({ acknowledged }) => !acknowledged)).toEqual([]);

  const total = (name: string) => sumOf(samples, `adrelay_acknowledgments_${name}_total`);
  const filled = sumOf(samples, "adrelay_injections_recorded_total", { outcome: "ok" });
  expect(total("delivered")).toBe(total("accepted"));
  expect(total("delivered")).toBeGreaterThanOrEqual(ACKNOWLEDGMENTS);
  expect(total("dead")).toBe(0);
  expect(sumOf(samples, "adrelay_acknowledgments")).toBe(filled + total("unknown"));
  const recorded = await adServerCount();
  expect(recorded).toBe(total("delivered"));
}, 300_000);

/** How many acknowledgments the ad server itself counted. */
async function adServerCount(): Promise<number> {
  return sumOf(await fetchMetrics(adServer.opsUrl), "adserver_acknowledgments_total");
}
