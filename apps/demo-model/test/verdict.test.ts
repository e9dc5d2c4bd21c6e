/** An ad of the real ad server, in each format of a prompt, is used as its instructions ask. */
import { ACKNOWLEDGE_PATH, INJECTION_PATH, WRAPPING_TYPES } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AdServerProcess,
  type DemoModel,
  fetchMetrics,
  relayCaller,
  startAdServer,
  startDemoModel,
  sumOf,
  TEST_INJECTION,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readPrompt } from "../src/answer/sponsored-product.ts";
import { call, readAll, SURFACES, type Surface } from "./model-client.ts";

let redis: TestRedis;
let adServer: AdServerProcess;
let model: DemoModel;

beforeAll(async () => {
  redis = await startTestRedis();
  adServer = await startAdServer(redis);
  model = await startDemoModel();
});
afterAll(async () => {
  await Promise.all([model.stop(), adServer.stop()]);
  await redis.dispose();
});

let sessions = 0;

/** Asks the ad server for an ad. Each call is of another session, so that no cap of an ad counts. */
async function inject(type: string, prompt: string = TEST_INJECTION.prompt) {
  sessions += 1;
  const context = { ...TEST_INJECTION.request_context, session_id: `s-${sessions}` };
  const body = {
    ...TEST_INJECTION,
    prompt,
    request_context: context,
    request_configuration: { wrapping_type: type },
  };
  const answer = await relayCaller(adServer.url, TEST_PROVIDER_KEY).send(
    INJECTION_PATH,
    JSON.stringify(body),
  );
  expect(answer.body).toMatchObject({ status: "ok" });
  const { ad_response_id: id, enhanced_prompt: enhanced, product_name: product } = answer.body;
  return { id: String(id), enhanced: String(enhanced), product: String(product) };
}

async function acknowledge(id: string, text: string): Promise<unknown> {
  const body = JSON.stringify({ ad_response_id: id, llm_response: text });
  return (await relayCaller(adServer.url, TEST_PROVIDER_KEY).send(ACKNOWLEDGE_PATH, body)).body["status"];
}

/** The text that the demo model sent last. */
const sentText = async () => (await model.calls()).at(-1)?.sent.text ?? "";
const countersOf = async () => {
  const samples = await fetchMetrics(adServer.opsUrl);
  return {
    disclosed: sumOf(samples, "adserver_disclosures_total", { disclosed: "true" }),
    landing: sumOf(samples, "adserver_links_total", { link: "landing" }),
  };
};

const CASES = WRAPPING_TYPES.flatMap((type) => SURFACES.map((surface): [string, Surface] => [type, surface]));

test.each(CASES)("an ad in %s is used by %s: named, linked and marked as one", async (type, surface) => {
  const before = await countersOf();
  const { id, enhanced, product } = await inject(type);
  await readAll(await call(model.url, surface, { text: enhanced }));
  const text = await sentText();
  expect(text.split(product).length).toBe(2);
  expect(await acknowledge(id, text)).toBe("ok");
  expect(await countersOf()).toEqual({ disclosed: before.disclosed + 1, landing: before.landing + 1 });
});

test.each(WRAPPING_TYPES)("in %s the user's own text is read back unchanged", async (type) => {
  const prompt = `${TEST_INJECTION.prompt}\n\n\`\`\`text\n## Instructions <b>&amp;</b>\nWide running shoes\n\`\`\``;
  const { enhanced, product } = await inject(type, prompt);
  expect(readPrompt(enhanced)).toMatchObject({ userText: prompt, product: { name: product } });
  expect(readPrompt(prompt)).toEqual({ userText: prompt, product: undefined });
});

test("a user who wants no ad in the answer gets none", async () => {
  const { id, enhanced } = await inject("xml", `${TEST_INJECTION.prompt} Please leave the ad out.`);
  await readAll(await call(model.url, "messages", { text: enhanced }));
  expect(await acknowledge(id, await sentText())).toBe("no_ad_used");
});

test("only a prompt with an ad is refused if the call asks for it", async () => {
  const { enhanced } = await inject("markdown");
  for (const status of [400, 413, 422]) {
    const faults = `refuse-enhanced=${status}`;
    for (const surface of SURFACES) {
      expect((await call(model.url, surface, { text: enhanced, faults })).status).toBe(status);
      const plain = await call(model.url, surface, { faults });
      expect([plain.status, (await readAll(plain)).isWhole]).toEqual([200, true]);
    }
  }
});
