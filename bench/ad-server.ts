import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startTestRedis } from "@adrelay/dev-servers";
import { startAdServer, TEST_PROVIDER_KEY } from "@adrelay/testkit";
import { z } from "zod";
import type { BenchAdServerOptions } from "../scripts/bootstrap/bench-ad-server-options.mjs";
import { writeManyAds } from "./ad-server/many-ads.ts";
import type { BenchPlace } from "./bench.ts";

/** One run of it. */
export interface AdServerBench extends BenchAdServerOptions, BenchPlace {}

const WARM_UP = 100;

const PROMPTS_FILE = fileURLToPath(new URL("../apps/ad-server/testdata/prompts-dev.jsonl", import.meta.url));
const promptSchema = z.object({
  prompt: z.string(),
  country: z.string().optional(),
  age: z.int().optional(),
});
const answerSchema = z.object({ execution_time_ms: z.number() });

/**
 * Measures the ad server with many ads on a real Redis: how long it takes to start, and how long an injection
 * takes at a steady rate, sent on time whether or not the earlier ones have been answered.
 */
export async function measureAdServer(bench: AdServerBench): Promise<void> {
  const redis = await startTestRedis();
  const server = await startAdServer(redis);
  try {
    await server.stop();
    const catalogFile = join(bench.folder, "catalog.yaml");
    writeManyAds(catalogFile, bench.ads);
    const startedAtMs = performance.now();
    await server.start({ CATALOG_FILE: catalogFile, PACING: "asap" });
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(2);
    bench.say(`start-up with ${bench.ads} ads: ${seconds} s`);
    const inject = makeInject(server.url, loadPrompts());
    for (let index = 0; index < WARM_UP; index += 1) {
      await inject(index);
    }
    report(bench, await sendOnTime(bench, inject));
  } finally {
    await server.stop();
    await redis.dispose();
  }
}

type Prompt = z.infer<typeof promptSchema>;

function loadPrompts(): readonly Prompt[] {
  return readFileSync(PROMPTS_FILE, "utf8")
    .trim()
    .split("\n")
    .map((line) => promptSchema.parse(JSON.parse(line)));
}

interface Answer {
  readonly status: number;
  /** As the caller has it, and as the server says of itself. */
  readonly durationMs: number;
  readonly servedMs: number;
}

type Inject = (index: number) => Promise<Answer>;

async function sendOnTime({ rate, seconds }: AdServerBench, inject: Inject): Promise<Answer[]> {
  const count = rate * seconds;
  const startedAtMs = performance.now();
  const sent: Promise<Answer>[] = [];
  while (sent.length < count) {
    const due = Math.min(count, Math.floor(((performance.now() - startedAtMs) * rate) / 1000) + 1);
    while (sent.length < due) {
      sent.push(inject(sent.length));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return Promise.all(sent);
}

function makeInject(url: string, prompts: readonly Prompt[]): Inject {
  return async (index) => {
    const { prompt, country, age } = prompts[index % prompts.length] ?? { prompt: "" };
    const startedAtMs = performance.now();
    const response = await fetch(`${url}/api/ad-injection/start/`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Service-API-Key": TEST_PROVIDER_KEY },
      body: JSON.stringify({
        prompt,
        request_context: { session_id: `s-${index}`, user_agent: "bench", user_ip: "192.0.2.1" },
        optional_context: { country, age },
      }),
    });
    const { execution_time_ms: servedMs } = answerSchema.parse(await response.json());
    return { status: response.status, durationMs: performance.now() - startedAtMs, servedMs };
  };
}

function report({ rate, say }: AdServerBench, answers: readonly Answer[]): void {
  const statuses = Map.groupBy(answers, ({ status }) => status);
  say(
    `${answers.length} injections at ${rate}/s: ${[...statuses].map(([status, some]) => `${some.length} of ${status}`).join(", ")}`,
  );
  say(`  as the caller has it: ${percentiles(answers.map(({ durationMs }) => durationMs))}`);
  say(`  as the server says: ${percentiles(answers.map(({ servedMs }) => servedMs))}`);
}

function percentiles(timesMs: readonly number[]): string {
  const sorted = [...timesMs].sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.ceil(sorted.length * share) - 1] ?? 0).toFixed(2);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, slowest ${at(1)} ms`;
}
