/** What the real clients do on abort, retry, time-out and a lost connection, and what becomes of the ad. README.md tells it. */
import { randomUUID } from "node:crypto";
import { eventually, fetchMetrics, relayCaller, sumOf } from "@adrelay/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ProxyStack, startProxyStack } from "../../e2e/model-proxy/proxy-stack.ts";
import { CLIENTS, type Question } from "./clients.ts";

globalThis.AI_SDK_LOG_WARNINGS = false;
const TIMEOUT_MS = 1500;
const END = /the simpler one\.$/;

let stack: ProxyStack;

beforeAll(async () => {
  stack = await startProxyStack({ proxies: 2 });
});
afterAll(() => stack.stop());

describe.each(CLIENTS)("%s", (_name, ask, { repeatsLate, rejectsAborted }) => {
  /** Asks, and tells what the client read, what it threw, and what the model's server received. */
  async function run(fault: string, more: Partial<Question> = {}) {
    const session = randomUUID();
    const read = { text: "" };
    const asked = ask({
      proxyUrl: String(stack.proxyUrls[0]),
      session,
      fault,
      ...more,
      onText: (text) => {
        read.text += text;
        more.onText?.(text);
      },
    });
    const error = await asked.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    const calls = async () =>
      (await stack.model.calls()).filter(({ headers }) => headers["x-run"] === session);
    const [id] = stack.adIds.filter((adId) => stack.sessionOf(adId) === session);
    expect(stack.adCallsOf(session)).toHaveLength(1);
    return { text: read.text, error, calls, id };
  }

  test("repeats a refused call by itself, with the same ad", async () => {
    const { text, error, calls, id } = await run("status=429;times=1");
    expect(error).toBeUndefined();
    expect(text).toMatch(END);
    expect(await stack.acknowledgedText(id)).toBe(text);
    const bodies = (await calls()).map(({ body }) => body.toString("utf8"));
    expect(bodies).toHaveLength(2);
    expect(bodies[1]).toBe(bodies[0]);
  });

  test("hangs up at an abort, and what it was sent is acknowledged", async () => {
    const user = new AbortController();
    const onText = (text: string) => (text.includes("Velmora") ? user.abort() : undefined);
    const { text, error, calls, id } = await run("delay=20", { signal: user.signal, onText });
    const acknowledged = await stack.acknowledgedText(id);
    expect(acknowledged.startsWith(text)).toBe(true);
    expect(text).toContain("Velmora");
    expect(error !== undefined).toBe(rejectsAborted);
    expect(acknowledged).not.toMatch(END);
    await eventually(async () =>
      expect((await calls()).map(({ sent }) => sent.end)).toEqual(["caller_gone"]),
    );
  });

  test(`${repeatsLate ? "repeats" : "gives up"} a call that takes too long, with one ad`, async () => {
    const { text, error, calls, id } = await run("slow-headers=60000;times=1", { timeoutMs: TIMEOUT_MS });
    expect(error).toBeUndefined();
    if (repeatsLate) {
      expect(text).toMatch(END);
      expect(await stack.acknowledgedText(id)).toBe(text);
      expect(await calls()).toHaveLength(2);
    } else {
      expect([text, await calls()]).toEqual(["", [expect.anything()]]);
      const { body } = await relayCaller(stack.relay.gatewayUrl).lookUp(String(id));
      expect(body).toMatchObject({ state: "awaiting", turn: { steps: 1 } });
    }
  });

  test("doesn't repeat an answer that breaks off, and what came of it is acknowledged", async () => {
    const { text, error, calls, id } = await run("cut-after=14");
    expect(error).toBeDefined();
    expect(text).not.toBe("");
    expect((await stack.acknowledgedText(id)).startsWith(text)).toBe(true);
    expect(await calls()).toHaveLength(1);
  });
});

test("in the end the books balance", async () => {
  for (const url of stack.opsUrls) {
    expect((await fetchMetrics(url)).get("adrelay_books_imbalance") ?? 0).toBe(0);
  }
  const samples = await fetchMetrics(stack.relay.gatewayOpsUrl);
  const opened = sumOf(samples, "adrelay_turns_opened_total");
  expect(opened).toBe(stack.adIds.length);
  expect(sumOf(samples, "adrelay_turns_total") + sumOf(samples, "adrelay_turns_open")).toBe(opened);
});
