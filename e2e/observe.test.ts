/** Dashboards and rules on a real Prometheus that scrapes a real stack. No query may fail or find nothing. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  findTestPrometheus,
  PrometheusClient,
  type RunningPrometheus,
  startPrometheus,
  startTestRedis,
  type TestRedis,
} from "@adrelay/dev-servers";
import {
  type AppProcess,
  acknowledged,
  eventually,
  filled,
  pause,
  type RelayStack,
  type Script,
  type ScriptedProvider,
  startApp,
  startRelayStack,
  startScriptedProvider,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { evaluate, loadPanelQueries } from "../deploy/grafana/src/panels.ts";
import { QUICK_SETTINGS, runTraffic, writeScrapeConfig } from "./observe/index.ts";

/** A rate needs two scrapes in its window, and a late acknowledgment needs the deadline to pass. */
const SETTLE_TIMEOUT_MS = 60_000;
const CHECK_INTERVAL_MS = 1000;

const found = await findTestPrometheus();
const folder = mkdtempSync(join(tmpdir(), "adrelay-observe-"));
const ending = new AbortController();
let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let proxy: AppProcess;
let model: AppProcess;
let prometheus: RunningPrometheus | undefined;
let client: PrometheusClient;
let traffic: Promise<void> = Promise.resolve();

beforeAll(async () => {
  if (found.kind === "skip") {
    return;
  }
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  makeFaulty(provider);
  stack = await startRelayStack({ redis, providerUrl: provider.url, env: QUICK_SETTINGS });
  await startProxy();
  const jobs = {
    "adrelay-gateway": stack.gatewayOpsUrl,
    "adrelay-worker": stack.workerOpsUrl,
    "adrelay-proxy": `http://127.0.0.1:${proxy.listening["ops_port"]}`,
  };
  const configFile = writeScrapeConfig(folder, jobs);
  prometheus = await startPrometheus({ program: found.programs.prometheus, dir: folder, configFile });
  client = new PrometheusClient(prometheus.url);
  traffic = runTraffic({
    gatewayUrl: stack.gatewayUrl,
    proxyUrl: `http://127.0.0.1:${proxy.listening["port"]}`,
    apiKey: TEST_API_KEY,
    deadlineMs: Number(QUICK_SETTINGS.ACK_DEADLINE_MS),
    signal: ending.signal,
  });
});
afterAll(async () => {
  ending.abort();
  await traffic;
  await prometheus?.stop();
  if (found.kind === "found") {
    await Promise.all([stack.stop(), proxy.stop(), model.stop()]);
    await provider.close();
    await redis.dispose();
  }
  rmSync(folder, { recursive: true, force: true });
});

async function startProxy(): Promise<void> {
  model = await startApp("demo-model", { DEMO_MODEL_PORT: "0", DEMO_MODEL_DELAY_MS: "5" });
  const modelUrl = `http://127.0.0.1:${model.listening["port"]}`;
  proxy = await startApp("proxy", {
    ...QUICK_SETTINGS,
    REDIS_URL: redis.url,
    PROVIDER_URL: provider.url,
    PROVIDER_API_KEY: TEST_PROVIDER_KEY,
    API_KEYS: TEST_API_KEY,
    PROXY_PORT: "0",
    PROXY_OPS_PORT: "0",
    PROXY_DRAIN_MS: "0",
    OPENAI_BASE_URL: `${modelUrl}/v1`,
    ANTHROPIC_BASE_URL: modelUrl,
  });
}

/** First a refused key, then an outage, then some faults of each kind. */
function makeFaulty({ onStart, onAcknowledge }: ScriptedProvider): void {
  let starts = 0;
  let acknowledgments = 0;
  onStart(() => {
    starts += 1;
    return starts % 15 === 0 ? { kind: "hang" } : filled();
  });
  const script: Script = () => {
    acknowledgments += 1;
    const isOutage = acknowledgments > 1 && acknowledgments < 30;
    const faults = { 5: 404, 11: 406, 17: 500 } as const;
    const status = acknowledgments === 1 ? 401 : isOutage ? 503 : Object(faults)[acknowledgments % 20];
    return status === undefined ? acknowledged() : { kind: "answer", status };
  };
  onAcknowledge(script);
}

/** Repeats the check each second until it succeeds. A check sends many queries, so it is not repeated more often. */
const settled = (check: () => Promise<void>) =>
  eventually(async () => {
    await pause(CHECK_INTERVAL_MS);
    await check();
  }, SETTLE_TIMEOUT_MS);

test.skipIf(found.kind === "skip")("every target of the shipped configuration is up", async () => {
  await settled(async () => {
    const targets = await client.targets();
    expect(targets.map(({ job, isUp }) => [job, isUp]).sort()).toEqual([
      ["adrelay-gateway", true],
      ["adrelay-proxy", true],
      ["adrelay-worker", true],
    ]);
  });
});

test.skipIf(found.kind === "skip")("no query of any panel is empty or fails", async () => {
  const queries = loadPanelQueries();
  expect(queries.length).toBeGreaterThan(80);
  await settled(async () => {
    const problems: string[] = [];
    for (const query of queries) {
      const value = await evaluate(client, query);
      if (value.kind !== "shown") {
        problems.push(`${query.dashboard}, ${query.panel}: ${value.kind}: ${query.expr}`);
      }
    }
    expect(problems).toEqual([]);
  });
});

test.skipIf(found.kind === "skip")(
  "each rule is evaluated, and every series that it selects exists",
  async () => {
    await settled(async () => {
      const rules = await client.rules();
      expect(rules.length).toBeGreaterThan(20);
      expect(rules.filter(({ isKnown, lastError }) => !isKnown || lastError !== "")).toEqual([]);
      const missing: string[] = [];
      for (const { kind, name, expr } of rules) {
        // An alert has no samples when nothing is wrong. The series that it selects must have some.
        for (const query of kind === "recording" ? [expr] : selectorsOf(expr)) {
          const answer = await client.query(query);
          const isThere = answer.kind === "ok" && answer.samples.length > 0;
          if (!isThere) {
            missing.push(`${name}: ${query}`);
          }
        }
      }
      expect(missing).toEqual([]);
    });
  },
);

test.skipIf(found.kind === "skip")(
  "missed ads, dead letters and a killed worker raise their alerts",
  async () => {
    await settled(async () =>
      expect(await raised()).toEqual(["AdrelayDeadLettersGrowing", "AdrelayMissedBurn"]),
    );
    await stack.crash("worker");
    await settled(async () => expect(await raised()).toContain("AdrelayWorkerAbsent"));
  },
);

test.skipIf(found.kind === "skip")("while Redis is away, panels of the ledger show nothing", async () => {
  const ofLedger =
    /adrelay(?:_acknowledgments|_dead_letters|:dead_letters:sum|_turns_open|_queue_jobs|_quota_used_bytes)\{/;
  // A growth shows what it was until its window is over.
  const ofNow = loadPanelQueries().filter(({ expr }) => ofLedger.test(expr) && !expr.includes("["));
  expect(ofNow.length).toBeGreaterThan(5);
  const shown = async () => {
    const values = await Promise.all(ofNow.map((query) => evaluate(client, query)));
    return new Set(values.map(({ kind }) => kind));
  };
  await settled(async () => expect(await shown()).toEqual(new Set(["shown"])));
  await redis.stop();
  await settled(async () => expect(await shown()).toEqual(new Set(["empty"])));
});

const raised = async () => {
  const wanted = ["AdrelayDeadLettersGrowing", "AdrelayMissedBurn", "AdrelayWorkerAbsent", "AdrelayNoData"];
  const rules = await client.rules();
  return rules
    .filter(({ name, state }) => wanted.includes(name) && state !== "inactive")
    .map(({ name }) => name)
    .sort();
};

/** A series that exists only if something is wrong: no publisher is gone here, and no call ends with 5xx. */
const ONLY_IF_WRONG = /^adrelay_gone_publisher_ad_responses|\bstatus(?:=|=~)"5/;

/** The series that an expression selects, but for those that exist only if something is wrong. */
function selectorsOf(expr: string): readonly string[] {
  const selectors = expr.match(/\b(?:adrelay[\w:]*|up)(?:\{[^}]*\})?/g) ?? [];
  return selectors.filter((selector) => !ONLY_IF_WRONG.test(selector));
}
