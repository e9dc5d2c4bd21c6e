/** An ad server whose calls take long: how many there may be, and what is left for others. */
import { ACKNOWLEDGE_PATH } from "@adrelay/contract";
import { eventually } from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KEY, OTHER_KEY, post, startAdServer, type TestAdServer, UNKNOWN_ID } from "./ad-server.ts";

const CALLS_MAX = 9;
const OF_ONE_PUBLISHER = 6;

let server: TestAdServer;
const ends = new AbortController();
beforeAll(async () => {
  const settings = { AD_SERVER_CALLS_IN_FLIGHT: String(CALLS_MAX), AD_SERVER_FAULTS: "acknowledge:hang*6" };
  server = await startAdServer(settings);
});
afterAll(async () => {
  ends.abort();
  await server.dispose();
});

const BODY = { ad_response_id: UNKNOWN_ID, llm_response: "text" };
const acknowledge = (key = KEY) =>
  post(`${server.url()}${ACKNOWLEDGE_PATH}`, BODY, { "X-Service-API-Key": key });

test("calls beyond the most get 503 at once, and another publisher still has room", async () => {
  // The faults are as many as the calls that are let in, so the order doesn't matter.
  const refused: Response[] = [];
  const hanging = Array.from({ length: OF_ONE_PUBLISHER + 4 }, () =>
    fetch(`${server.url()}${ACKNOWLEDGE_PATH}`, {
      method: "POST",
      headers: { "X-Service-API-Key": KEY, "Content-Type": "application/json" },
      body: JSON.stringify(BODY),
      signal: ends.signal,
    }).then(
      (answer) => void refused.push(answer),
      () => {},
    ),
  );
  await eventually(() => expect(refused).toHaveLength(4));
  for (const answer of refused) {
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await answer.json()).toMatchObject({ code: "overloaded", limit: "calls" });
  }
  expect((await acknowledge(OTHER_KEY)).status).toBe(404);
  ends.abort();
  await Promise.all(hanging);
  await eventually(async () => expect((await acknowledge()).status).toBe(404));
});
