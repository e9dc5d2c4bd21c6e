import { ACKNOWLEDGE_PATH } from "@adrelay/contract";
import { afterEach, expect, test } from "vitest";
import { callerOf, KEY, PROMPTS, startAdServer, type TestAdServer } from "./ad-server.ts";

let server: TestAdServer | undefined;
afterEach(async () => {
  await server?.dispose();
  server = undefined;
});

async function faultyServer(faults: string): Promise<TestAdServer> {
  server = await startAdServer({ AD_SERVER_FAULTS: faults });
  return server;
}

test("recoverable_error records nothing, and a later try is recorded", async () => {
  const caller = callerOf(await faultyServer("acknowledge:recoverable_error*2"));
  const { id, product } = await caller.served();
  for (const _ of [1, 2]) {
    const { status, body } = await caller.acknowledge(id, product);
    expect(status).toBe(200);
    expect(body).toEqual({ ad_ack_id: expect.any(String), status: "recoverable_error", success: false });
  }
  expect((await caller.lookUp(id)).body).toMatchObject({ acknowledged: false, posts: 0 });
  expect((await caller.acknowledge(id, product)).body).toMatchObject({ status: "ok" });
});

test("a status has its Retry-After and the code injected_fault", async () => {
  const caller = callerOf(await faultyServer("acknowledge:429*1(retry_after=7); start:503*1"));
  const failed = await caller.start(PROMPTS.ok);
  expect([failed.status, failed.body["code"]]).toEqual([503, "injected_fault"]);
  const { id, product } = await caller.served();
  const limited = await caller.acknowledge(id, product);
  expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "7"]);
  expect((await caller.acknowledge(id, product)).status).toBe(200);
});

test("a reset cuts the connection without an answer", async () => {
  const caller = callerOf(await faultyServer("start:reset*1"));
  await expect(caller.start(PROMPTS.ok)).rejects.toThrow();
  expect((await caller.start(PROMPTS.ok)).status).toBe(200);
});

test("a hang gives no answer until the caller disconnects", async () => {
  const { url } = await faultyServer("acknowledge:hang*1");
  const signal = AbortSignal.timeout(300);
  const call = fetch(`${url()}${ACKNOWLEDGE_PATH}`, request(signal));
  await expect(call).rejects.toMatchObject({ name: "TimeoutError" });
});

test("a drip sends its headers immediately and its body byte by byte", async () => {
  const { url } = await faultyServer("acknowledge:drip*1");
  const controller = new AbortController();
  const response = await fetch(`${url()}${ACKNOWLEDGE_PATH}`, request(controller.signal));
  expect(response.status).toBe(200);
  const reader = response.body?.getReader();
  const first = await reader?.read();
  const second = await reader?.read();
  expect([first?.value?.length, second?.value?.length]).toEqual([1, 1]);
  controller.abort();
});

test("a call with a bad key gets 401 instead of a fault", async () => {
  const { url } = await faultyServer("any:503");
  const response = await fetch(`${url()}${ACKNOWLEDGE_PATH}`, { method: "POST" });
  expect(response.status).toBe(401);
});

function request(signal: AbortSignal): RequestInit {
  const headers = { "Content-Type": "application/json", "X-Service-API-Key": KEY };
  return { method: "POST", headers, body: "{}", signal };
}
