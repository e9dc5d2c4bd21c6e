/** Long bodies to a provider, and answers for which there is no room. */
import { eventually, startScriptedProvider } from "@adrelay/testkit";
import { expect, onTestFinished, test } from "vitest";
import { ProviderClient } from "../src/index.ts";
import { startRawServer } from "./raw-server.ts";

const LONG = Buffer.from(JSON.stringify({ prompt: "grüße ".repeat(150_000) }));
const TIMEOUT_MS = 10_000;

async function setup() {
  const provider = await startScriptedProvider();
  const client = new ProviderClient();
  onTestFinished(async () => {
    await client.stop();
    await provider.close();
  });
  const start = (body: Buffer, url = provider.url, holdAnswer = (_bytes: number) => true) =>
    client.startInjection({
      account: { url, apiKey: "k", apiKeyHeader: "X-Key" },
      body,
      requestId: "r",
      timeoutMs: TIMEOUT_MS,
      holdAnswer,
    });
  return { provider, start };
}

test.each([["short", LONG.subarray(0, 100)] as const, ["long", LONG] as const])(
  "a %s body arrives byte for byte and with its length",
  async (_name, body) => {
    const { provider, start } = await setup();
    expect((await start(body).reply).reply).toMatchObject({ kind: "answered", status: 200 });
    expect(provider.posts[0]?.body.equals(body)).toBe(true);
    expect(provider.posts[0]?.headers).toMatchObject({ "content-length": String(body.length) });
  },
);

test("connections are kept after long bodies", async () => {
  const { provider, start } = await setup();
  for (let call = 0; call < 3; call += 1) {
    await start(LONG).reply;
  }
  expect(provider.posts.map(({ body }) => body.length)).toEqual([LONG.length, LONG.length, LONG.length]);
});

test("a body counts as sent once the provider has taken it, although it never answers", async () => {
  const { provider, start } = await setup();
  provider.onStart(() => ({ kind: "hang" }));
  const call = start(LONG);
  expect(call.isBodySent()).toBe(false);
  await eventually(() => expect(call.isBodySent()).toBe(true));
  call.giveUp();
  expect((await call.reply).reply).toMatchObject({ kind: "failed", stage: "after_send" });
});

test("a body that the provider doesn't read doesn't count as sent", async () => {
  const deafPort = await startRawServer((socket) => void socket.pause());
  const { start } = await setup();
  const call = start(Buffer.alloc(32 * 1024 * 1024, "x"), `http://127.0.0.1:${deafPort}`);
  await eventually(() => expect(call.wasSent()).toBe(true));
  expect(call.isBodySent()).toBe(false);
  call.giveUp();
  await call.reply;
});

test("an answer for which there is no room is given up while it arrives", async () => {
  const { provider, start } = await setup();
  provider.onStart(() => ({ kind: "raw", status: 200, bytes: "x".repeat(2_000_000) }));
  let heldBytes = 0;
  const hold = (bytes: number) => {
    heldBytes += bytes;
    return heldBytes <= 500_000;
  };
  expect((await start(LONG, provider.url, hold).reply).reply).toMatchObject({
    kind: "failed",
    stage: "after_send",
    code: "overloaded",
  });
  expect(heldBytes).toBeLessThan(700_000);
});
