/**
 * Guards what the relay says of ads in models' answers: the real ad server's ad, in each format of a prompt, through the proxy and
 * the demo model; then a provider whose verdicts contradict what stands in the text.
 */
import { WRAPPING_TYPES } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AdServerProcess,
  type AppProcess,
  acknowledged,
  type DemoModel,
  eventually,
  fetchMetrics,
  filled,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startAdServer,
  startApp,
  startDemoModel,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  TEST_ADMIN_TOKEN,
  TEST_API_KEY,
  TEST_INJECTION,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

interface Relay {
  readonly stack: RelayStack;
  readonly proxy: AppProcess;
}

let model: DemoModel;
let sessions = 0;

beforeAll(async () => {
  model = await startDemoModel();
});
afterAll(() => model.stop());

async function startRelay(redis: TestRedis, providerUrl: string): Promise<Relay> {
  const stack = await startRelayStack({ redis, providerUrl });
  const proxy = await startApp("proxy", {
    REDIS_URL: redis.url,
    PROVIDER_URL: providerUrl,
    PROVIDER_API_KEY: TEST_PROVIDER_KEY,
    API_KEYS: TEST_API_KEY,
    PROXY_PORT: "0",
    PROXY_OPS_PORT: "0",
    OPENAI_BASE_URL: model.openAiUrl,
    PROXY_INJECTION_TIMEOUT_MS: "10000",
    PROXY_DRAIN_MS: "0",
    SHUTDOWN_TIMEOUT_MS: "5000",
  });
  return { stack, proxy };
}

/** Asks the demo model through the proxy until it gets an ad, and waits until the answer is acknowledged. */
async function ask({ stack, proxy }: Relay, text: string, wrappingType = "xml") {
  // On a busy machine Redis may be late, and a call then gets no ad.
  const id = await eventually(async () => {
    sessions += 1;
    const answer = await fetch(`http://127.0.0.1:${String(proxy.listening["port"])}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "X-Service-API-Key": TEST_API_KEY,
        authorization: "Bearer model-key",
        "content-type": "application/json",
        "X-Adrelay-Session-Id": `s-${sessions}`,
        "X-Adrelay-User-Agent": TEST_INJECTION.request_context.user_agent,
        "X-Adrelay-User-IP": TEST_INJECTION.request_context.user_ip,
        "X-Adrelay-Country": "US",
        "X-Adrelay-Wrapping-Type": wrappingType,
      },
      body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: text }] }),
    });
    await answer.text();
    expect(answer.headers.get("x-adrelay-ad")).toBe("injected");
    return answer.headers.get("x-adrelay-ad-response-id") ?? "";
  });
  const caller = relayCaller(stack.gatewayUrl, TEST_API_KEY);
  await eventually(async () =>
    expect((await caller.lookUp(id)).body).toMatchObject({ ad_response_id: id, state: "delivered" }),
  );
  return { id, view: (await caller.lookUp(id)).body };
}

/** What every process of the relay counts. */
async function countsOf({ stack, proxy }: Relay) {
  const urls = [
    stack.gatewayOpsUrl,
    stack.workerOpsUrl,
    `http://127.0.0.1:${String(proxy.listening["ops_port"])}`,
  ];
  const counts = await Promise.all(
    urls.map(async (url) => {
      const samples = await fetchMetrics(url);
      const answers = (mention: string, label: string) =>
        sumOf(samples, "adrelay_answers_total", { mention, label });
      return {
        linked: answers("link", "yes"),
        named: answers("name", "no"),
        none: answers("none", "no"),
        all: sumOf(samples, "adrelay_answers_total"),
        falseOk: sumOf(samples, "adrelay_verdict_disagreements_total", { status: "ok" }),
        falseNo: sumOf(samples, "adrelay_verdict_disagreements_total", { status: "no_ad_used" }),
      };
    }),
  );
  expect(counts[1]).toEqual(counts[0]);
  expect(counts[2]).toEqual(counts[0]);
  return counts[0];
}

/** If Redis is slow, a scrape lacks the counts. Such a scrape is repeated. */
const expectCounts = (relay: Relay, wanted: Readonly<Record<string, number>>) =>
  eventually(async () => expect(await countsOf(relay)).toMatchObject(wanted));

describe("with the ad server's own ads", () => {
  let redis: TestRedis;
  let adServer: AdServerProcess;
  let relay: Relay;
  beforeAll(async () => {
    redis = await startTestRedis();
    adServer = await startAdServer(redis);
    relay = await startRelay(redis, adServer.url);
  });
  afterAll(async () => {
    await relay.proxy.stop();
    await relay.stack.stop();
    await adServer.stop();
    await redis.dispose();
  });

  test("an ad in any wrapping is found with its link and label, as the ad server finds it", async () => {
    for (const type of WRAPPING_TYPES) {
      const { id, view } = await ask(relay, TEST_INJECTION.prompt, type);
      expect(view).toMatchObject({ status: "ok", finding: { mention: "link", labelled: true } });
      const shown = await fetch(`${relay.stack.gatewayOpsUrl}/admin/v1/acknowledgments/${id}`, {
        headers: { authorization: `Bearer ${TEST_ADMIN_TOKEN}` },
      });
      expect(await shown.json()).toMatchObject({ finding: { mention: "link", labelled: true } });
    }
    await expectCounts(relay, { linked: 3, all: 3, falseOk: 0, falseNo: 0 });
  });

  test("a model that ignores the ad is found out, and the ad server agrees", async () => {
    const { view } = await ask(relay, `${TEST_INJECTION.prompt} Please leave the ad out.`);
    expect(view).toMatchObject({ status: "no_ad_used", finding: { mention: "none", labelled: false } });
    await expectCounts(relay, { linked: 3, none: 1, falseOk: 0, falseNo: 0 });
  });
});

describe("with a provider whose verdicts are scripted", () => {
  let redis: TestRedis;
  let provider: ScriptedProvider;
  let relay: Relay;
  /** A prompt in our ad server's format, so that the demo model uses it. */
  const promptWith = (product: string) =>
    `=== SPONSORED PRODUCT 1 ===\nproduct: ${product}\nlanding_url: https://velmora.example/drift\n=== INSTRUCTIONS 1 ===\n=== USER MESSAGE 1 ===\nWhich shoes?\n=== END OF USER MESSAGE 1 ===`;
  beforeAll(async () => {
    redis = await startTestRedis();
    provider = await startScriptedProvider();
    relay = await startRelay(redis, provider.url);
  });
  afterAll(async () => {
    await relay.proxy.stop();
    await relay.stack.stop();
    await provider.close();
    await redis.dispose();
  });

  test("a verdict against a mention, and one for none, are counted each", async () => {
    provider.onStart(() => filled({ enhanced_prompt: promptWith("Velmora Drift") }));
    provider.onAcknowledge(() => acknowledged("no_ad_used"));
    const denied = await ask(relay, "Which shoes?");
    expect(denied.view).toMatchObject({ status: "no_ad_used", finding: { mention: "link", labelled: true } });
    await expectCounts(relay, { falseOk: 0, falseNo: 1 });
    provider.onStart(() => filled({ enhanced_prompt: "Which shoes?" }));
    provider.onAcknowledge(() => acknowledged("ok"));
    const praised = await ask(relay, "Which shoes?");
    expect(praised.view).toMatchObject({ status: "ok", finding: { mention: "none", labelled: false } });
    await expectCounts(relay, { linked: 1, none: 1, all: 2, falseOk: 1, falseNo: 1 });
  });

  test("a mention that no reader sees is none", async () => {
    // The demo model writes the fact as it is: a hidden element between other text.
    const hidden = "shoes <span hidden>Velmora Drift</span>";
    const page = promptWith(hidden).replace("landing_url: https://velmora.example/drift\n", "");
    provider.onStart(() => filled({ enhanced_prompt: page }));
    provider.onAcknowledge(() => acknowledged("no_ad_used"));
    const { id, view } = await ask(relay, "Which shoes?");
    const [post] = provider.acknowledgmentsOf(id);
    expect(String(post?.fields["llm_response"])).toContain("Velmora Drift</span> (Sponsored)");
    expect(view).toMatchObject({ finding: { mention: "none", labelled: false } });
    await expectCounts(relay, { none: 2, falseNo: 1 });
  });

  test("an answer of a provider without a product's name is unknown", async () => {
    provider.onStart(() => filled({ product_name: null, enhanced_prompt: promptWith("Velmora Drift") }));
    const { view } = await ask(relay, "Which shoes?");
    expect(view).toMatchObject({ finding: { mention: "unknown", labelled: false } });
  });

  test("no log line of the proxy or a worker has a word of the ad", async () => {
    provider.onStart(() => filled({ enhanced_prompt: promptWith("Velmora Drift") }));
    await ask(relay, "Which shoes?");
    const apps = [relay.proxy, ...relay.stack.apps.values()];
    const logs = JSON.stringify(apps.map((app) => [app.logs, app.stderr()]));
    expect(logs).not.toMatch(/velmora/i);
  });
});
