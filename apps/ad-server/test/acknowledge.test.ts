import { fetchMetrics, sumOf } from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import {
  callerOf,
  get,
  OTHER_KEY,
  PROMPTS,
  post,
  SHOES_FILE,
  startAdServer,
  type TestAdServer,
  UNKNOWN_ID,
} from "./ad-server.ts";

const UUID = /^[0-9a-f-]{36}$/;

let server: TestAdServer;
beforeAll(async () => {
  server = await startAdServer({ CATALOG_FILE: SHOES_FILE });
});
afterAll(() => server.dispose());

test.each([
  ["Try the PRODUCT (Sponsored).", "ok"],
  ["Any pair will do.", "no_ad_used"],
  ["", "no_ad_used"],
])("the verdict on the answer %j is %s", async (text, verdict) => {
  const caller = callerOf(server);
  const { id, product } = await caller.served();
  const { status, body } = await caller.acknowledge(id, text.replace("PRODUCT", product));
  expect(status).toBe(200);
  expect(body).toEqual({ ad_ack_id: expect.stringMatching(UUID), status: verdict, success: true });
});

test("an id in capitals names the same response", async () => {
  const caller = callerOf(server);
  const { id, product } = await caller.served();
  expect((await caller.acknowledge(id.toUpperCase(), product)).status).toBe(200);
  expect((await caller.acknowledge(id, product)).status).toBe(409);
});

test.each([["the same text"], ["another text"]])(
  "a second acknowledgment with %s is 409 and returns the first one",
  async (text) => {
    const caller = callerOf(server);
    const { id } = await caller.served();
    const first = await caller.acknowledge(id, "the same text");
    const second = await caller.acknowledge(id, text);
    expect(second.status).toBe(409);
    expect(second.headers.get("content-type")).toContain("application/problem+json");
    expect(second.body).toMatchObject({
      code: "already_acknowledged",
      ad_ack_id: first.body["ad_ack_id"],
      acknowledgment_status: "no_ad_used",
    });
  },
);

test("of many concurrent acknowledgments of one id exactly one is recorded", async () => {
  const caller = callerOf(server);
  const { id, product } = await caller.served();
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => caller.acknowledge(id, `${product} ${n}`)),
  );
  const byStatus = Map.groupBy(answers, ({ status }) => status);
  expect(byStatus.get(200)).toHaveLength(1);
  expect(byStatus.get(409)).toHaveLength(19);
  const ackIds = new Set(answers.map(({ body }) => body["ad_ack_id"]));
  expect(ackIds.size).toBe(1);
  expect((await caller.lookUp(id)).body["posts"]).toBe(20);
});

test.each([PROMPTS.rejected, PROMPTS.no_fill])("acknowledging the response to %j is 406", async (prompt) => {
  const caller = callerOf(server);
  const { id } = await caller.served(prompt);
  const { status, body } = await caller.acknowledge(id, "text");
  expect(status).toBe(406);
  expect(body).toMatchObject({ code: "not_acknowledgeable" });
});

test("an unknown id is 404, and another publisher's id is 403 and stays unacknowledged", async () => {
  const caller = callerOf(server);
  expect((await caller.acknowledge(UNKNOWN_ID, "x")).body).toMatchObject({
    status: 404,
    code: "unknown_ad_response",
  });
  const { id, product } = await caller.served();
  const stranger = await caller.acknowledge(id, product, { "X-Service-API-Key": OTHER_KEY });
  expect(stranger.body).toMatchObject({ status: 403, code: "other_publisher" });
  expect((await caller.acknowledge(id, product)).status).toBe(200);
});

test("the look-up returns verdict and posts, to the response's publisher only", async () => {
  const caller = callerOf(server);
  const { id, product } = await caller.served();
  expect((await caller.lookUp(id)).body).toEqual({
    ad_response_id: id,
    acknowledged: false,
    ad_ack_id: null,
    status: null,
    disclosed: null,
    link: null,
    posts: 0,
  });
  const { body } = await caller.acknowledge(id, product);
  await caller.acknowledge(id, "again");
  expect((await caller.lookUp(id.toUpperCase())).body).toEqual({
    ad_response_id: id,
    acknowledged: true,
    ad_ack_id: body["ad_ack_id"],
    status: "ok",
    disclosed: false,
    link: "none",
    posts: 2,
  });
  expect((await caller.lookUp(id, OTHER_KEY)).status).toBe(403);
  expect((await caller.lookUp(id, "no key of ours")).status).toBe(401);
  expect((await caller.lookUp(UNKNOWN_ID)).status).toBe(404);
  expect((await caller.lookUp("abc")).status).toBe(404);
});

test.each([
  ["ad_response_id", { llm_response: "x" }],
  ["ad_response_id", { ad_response_id: "abc", llm_response: "x" }],
  ["ad_response_id", { ad_response_id: 7, llm_response: "x" }],
  ["llm_response", { ad_response_id: UNKNOWN_ID }],
  ["llm_response", { ad_response_id: UNKNOWN_ID, llm_response: null }],
])("a wrong %s is 422 with its path", async (path, body) => {
  const answer = await post(`${server.url()}/api/ad-injection/acknowledge/`, body);
  expect(answer.status).toBe(422);
  expect(answer.body).toMatchObject({ code: "validation_failed", errors: [{ path }] });
});

test("the metrics count recorded acknowledgments but not refused ones", async () => {
  const caller = callerOf(server);
  const count = async () => sumOf(await fetchMetrics(server.opsUrl()), "adserver_acknowledgments_total");
  const before = await count();
  const { id, product } = await caller.served();
  await caller.acknowledge(id, product);
  await caller.acknowledge(id, product);
  expect(await count()).toBe(before + 1);
});

test.each([
  ["PRODUCT (Sponsored) is light.", true],
  ["PRODUCT is light.", false],
  ["Any pair will do.", null],
])("the disclosure recorded for %j is %s", async (text, disclosed) => {
  const caller = callerOf(server);
  const count = async () =>
    sumOf(await fetchMetrics(server.opsUrl()), "adserver_disclosures_total", {
      disclosed: String(disclosed),
    });
  const before = await count();
  const { id, product } = await caller.served();
  await caller.acknowledge(id, text.replace("PRODUCT", product));
  expect((await caller.lookUp(id)).body["disclosed"]).toBe(disclosed);
  expect(await count()).toBe(before + (disclosed === null ? 0 : 1));
});

test.each([
  ["[PRODUCT](https://evil.test/shoe) (Sponsored)", "foreign", 1],
  ["PRODUCT (Sponsored)", "none", 0],
  ["Any pair will do.", null, 0],
])("the link recorded for %j is %s", async (text, link, foreign) => {
  const caller = callerOf(server);
  const count = async () =>
    sumOf(await fetchMetrics(server.opsUrl()), "adserver_links_total", { link: String(link) });
  const reported = async () => {
    const { totals } = z
      .object({ totals: z.object({ foreign_links: z.number() }) })
      .parse((await get(`${server.url()}/reports/spend`)).body);
    return totals.foreign_links;
  };
  const [before, reportedBefore] = [await count(), await reported()];
  const { id, product } = await caller.served();
  await caller.acknowledge(id, text.replace("PRODUCT", product));
  const { body } = await caller.lookUp(id);
  expect(body["link"]).toBe(link);
  expect(await count()).toBe(before + (link === null ? 0 : 1));
  expect(await reported()).toBe(reportedBefore + foreign);
  if (link === "foreign") {
    expect(body).toMatchObject({ status: "ok", disclosed: false });
  }
});

test("a link to the landing page counts as a use of the ad", async () => {
  const caller = callerOf(server);
  const { id } = await caller.served();
  const text = "Look here: https://stridewell.example/tempo-3 or https://velmora.example/drift";
  expect((await caller.acknowledge(id, text)).body["status"]).toBe("ok");
});
