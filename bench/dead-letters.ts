import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startTestRedis } from "@adrelay/dev-servers";
import {
  eventually,
  type RelayStack,
  startRelayStack,
  TEST_ADMIN_TOKEN,
  TEST_API_KEY,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { digestKey } from "../packages/provider/src/index.ts";
import type { BenchDeadLettersOptions } from "../scripts/bootstrap/bench-dead-letters-options.mjs";
import type { BenchPlace } from "./bench.ts";
import { AdminApi } from "./dead-letters/admin.ts";
import { type CountingProvider, startCountingProvider } from "./dead-letters/counting-provider.ts";
import { fillDeadLetters, PUBLISHERS } from "./dead-letters/fill.ts";
import { type SlowCommands, slowestCommands, watchSlowCommands } from "./dead-letters/slow-commands.ts";

/** One run of it. */
export interface DeadLettersBench extends BenchDeadLettersOptions, BenchPlace {}

const CONCURRENCY = 50;
const PAGE_CALLS = 50;
const WAIT_MS = 15 * 60_000;

/**
 * Measures what an operator does with many dead letters, on a real Redis, gateway and worker: how long a page takes,
 * which Redis command is the slowest, and a bulk replay whose worker is killed in the middle. Whether no letter got
 * lost and the provider took none twice.
 */
export async function measureDeadLetters(bench: DeadLettersBench): Promise<boolean> {
  const redis = await startTestRedis();
  const provider = await startCountingProvider();
  let stack: RelayStack | undefined;
  try {
    bench.say(`filling ${bench.letters} dead letters …`);
    await timed(bench, "filled", () => fillDeadLetters(redis.url, bench.letters));
    const admin = new Redis(redis.url);
    await watchSlowCommands(admin);
    stack = await startRelayStack({ redis, providerUrl: provider.url, env: settings(bench.folder) });
    const api = new AdminApi(stack.gatewayOpsUrl, TEST_ADMIN_TOKEN);
    await measurePages(bench, api);
    report(bench, "listing", await slowestCommands(admin));
    await replayAll(bench, { stack, api, provider });
    report(bench, "the bulk replay", await slowestCommands(admin));
    admin.disconnect();
    return await isWhole(bench, api, provider);
  } finally {
    await stack?.stop();
    await provider.close();
    await redis.dispose();
  }
}

function settings(folder: string): Record<string, string> {
  const digest = digestKey(TEST_API_KEY).toString("hex");
  const rows = PUBLISHERS.map((id, at) => {
    const key = at === 0 ? digest : digestKey(`${TEST_API_KEY}-${id}`).toString("hex");
    return `  - { id: ${id}, name: ${id}, key_sha256: [${key}] }`;
  });
  const file = join(folder, "publishers.yaml");
  writeFileSync(file, `publishers:\n${rows.join("\n")}\n`);
  return {
    API_KEYS: "",
    PUBLISHERS_FILE: file,
    WORKER_CONCURRENCY: String(CONCURRENCY),
    SWEEP_INTERVAL_MS: "1000",
  };
}

function report({ say }: DeadLettersBench, what: string, { slowest, count }: SlowCommands): void {
  say(`slowest Redis commands during ${what}, of ${count} that took more than 1 ms:`);
  for (const { durationMs, command } of slowest) {
    say(`  ${durationMs.toFixed(1)} ms  ${command}`);
  }
}

async function measurePages(bench: DeadLettersBench, api: AdminApi): Promise<void> {
  const { say } = bench;
  // The process' very first answers load code, and are not what is measured.
  await api.stats();
  const queries = ["limit=50", "limit=500", "limit=50&publisher=acme", "limit=500&reason=http_404"];
  for (const query of queries) {
    const durations: number[] = [];
    for (let call = 0; call < PAGE_CALLS; call += 1) {
      const startedAtMs = performance.now();
      await api.page(query);
      durations.push(performance.now() - startedAtMs);
    }
    const [first = 0] = durations;
    durations.sort((a, b) => a - b);
    const at = (share: number) => (durations[Math.floor((durations.length - 1) * share)] ?? 0).toFixed(1);
    say(`page ${query}: first ${first.toFixed(1)} ms, median ${at(0.5)} ms, slowest ${at(1)} ms`);
  }
  const dry = performance.now();
  await api.call("POST", "/replays", { dry_run: true, publisher: "acme" });
  say(`dry run: ${(performance.now() - dry).toFixed(1)} ms`);
  const seen = new Set<string>();
  let shown = 0;
  await timed(bench, "walked all pages", async () => {
    let cursor: string | null = "";
    while (cursor !== null) {
      const page = await api.page(`limit=500${cursor === "" ? "" : `&cursor=${cursor}`}`);
      for (const { ad_response_id: id } of page.acknowledgments) {
        seen.add(id);
        shown += 1;
      }
      cursor = page.next_cursor;
    }
  });
  say(`pages showed ${shown} letters, ${seen.size} of them different`);
}

interface Relay {
  readonly stack: RelayStack;
  readonly api: AdminApi;
  readonly provider: CountingProvider;
}

async function replayAll(
  { letters, rate, say }: DeadLettersBench,
  { stack, api, provider }: Relay,
): Promise<void> {
  const waitMs = (letters / rate) * 1000 + WAIT_MS;
  const { replay_id: id, matched } = await api.startReplay({ rate_per_second: rate });
  say(`bulk replay of ${matched} at ${rate}/s …`);
  const startedAtMs = performance.now();
  await eventually(async () => {
    expect((await api.replay(id)).replayed > letters * 0.4, "not in the middle yet");
  }, waitMs);
  await stack.crash("worker");
  const { replayed } = await api.replay(id);
  say(`worker killed at ${replayed} replayed, ${provider.posts.size} delivered`);
  await stack.start("worker");
  await eventually(async () => expect((await api.replay(id)).state === "completed", "still running"), waitMs);
  const done = await api.replay(id);
  say(`replayed ${done.replayed} in ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`);
  await eventually(async () => {
    const { states } = await api.stats();
    expect((states["queued"] ?? 0) === 0, "deliveries go on");
  }, waitMs);
  const seconds = (performance.now() - startedAtMs) / 1000;
  say(`all delivered after ${seconds.toFixed(1)} s: ${(letters / seconds).toFixed(0)}/s`);
}

/** Nothing lost; nothing taken twice; and what was posted again was in flight when the worker was killed. */
async function isWhole(
  { letters, say }: DeadLettersBench,
  api: AdminApi,
  { posts }: CountingProvider,
): Promise<boolean> {
  const { states } = await api.stats();
  const repeats = [...posts.values()].reduce((sum, count) => sum + count - 1, 0);
  say(`delivered ${states["delivered"]}, dead ${states["dead"]}; the provider took ${posts.size}`);
  say(`posted again with the same key: ${repeats} (${CONCURRENCY} were in flight at the kill at most)`);
  const isFine =
    states["delivered"] === letters &&
    states["dead"] === 0 &&
    posts.size === letters &&
    repeats <= CONCURRENCY;
  say(isFine ? "ok" : "NOT ok");
  return isFine;
}

async function timed({ say }: DeadLettersBench, what: string, run: () => Promise<void>): Promise<void> {
  const startedAtMs = performance.now();
  await run();
  say(`${what} in ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`);
}

function expect(isSo: boolean, otherwise: string): void {
  if (!isSo) {
    throw new TypeError(otherwise);
  }
}
