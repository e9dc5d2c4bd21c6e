/** An ad server whose callers send long bodies that don't end: how much memory these take, and what is left for others. */
import { request } from "node:http";
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { ACKNOWLEDGE_PATH, API_KEY_HEADER } from "@adrelay/contract";
import { containerMemorySettings } from "@adrelay/dev-servers";
import { eventually, fetchMetrics } from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KEY, OTHER_KEY, post, startAdServer, type TestAdServer, UNKNOWN_ID } from "./ad-server.ts";

const MEBIBYTE = 1024 * 1024;
const BODIES = 100;
/** Less than what is read at most: six times BODY_LIMIT_BYTES. */
const BODY_BYTES = 5.5 * MEBIBYTE;
const MEMORY_MAX_MIB = 768;

let server: TestAdServer;
const ends = new AbortController();
beforeAll(async () => {
  server = await startAdServer(containerMemorySettings(MEMORY_MAX_MIB));
});
afterAll(async () => {
  ends.abort();
  await server.dispose();
});

/** A compressed body without its end. Resolves to the answer, if one comes. */
function sendStalled(compressed: Buffer): Promise<unknown> {
  return new Promise((resolve) => {
    const call = request(`${server.url()}${ACKNOWLEDGE_PATH}`, {
      method: "POST",
      headers: { [API_KEY_HEADER]: KEY, "Content-Type": "application/json", "Content-Encoding": "gzip" },
      signal: ends.signal,
    });
    call.on("error", () => {});
    call.on("response", async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      resolve({ status: response.statusCode, ...JSON.parse(text) });
      call.destroy();
    });
    call.write(compressed);
  });
}

test("long bodies beyond the room for them get 503, and another publisher still has room", async () => {
  const compressed = await promisify(gzip)(Buffer.alloc(BODY_BYTES, " "), {
    finishFlush: constants.Z_SYNC_FLUSH,
  });
  const refused: unknown[] = [];
  for (let sent = 0; sent < BODIES; sent += 1) {
    void sendStalled(compressed).then((answer) => refused.push(answer));
  }
  // A publisher's two thirds of the room are less than 16 bodies.
  await eventually(() => expect(refused.length).toBeGreaterThan(BODIES - 16), 60_000);
  expect(refused[0]).toMatchObject({ status: 503, code: "overloaded", limit: "bytes" });
  const body = { ad_response_id: UNKNOWN_ID, llm_response: "text" };
  const headers = { [API_KEY_HEADER]: OTHER_KEY };
  expect((await post(`${server.url()}${ACKNOWLEDGE_PATH}`, body, headers)).status).toBe(404);
  const memory = (await fetchMetrics(server.opsUrl())).get("process_resident_memory_bytes");
  expect(memory).toBeLessThan(MEMORY_MAX_MIB * MEBIBYTE);
  ends.abort();
});

test("bodies that have ended make room for others", async () => {
  const body = { ad_response_id: UNKNOWN_ID, llm_response: "x".repeat(MEBIBYTE / 2) };
  const send = async () => expect((await post(`${server.url()}${ACKNOWLEDGE_PATH}`, body)).status).toBe(404);
  await eventually(send);
  for (let sent = 0; sent < 2 * BODIES; sent += 1) {
    await send();
  }
});
