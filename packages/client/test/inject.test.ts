import { createServer } from "node:net";
import { acknowledged, eventually, filled, unfilled } from "@adrelay/testkit";
import { expect, onTestFinished, test } from "vitest";
import { createRelay, RelayError, RelayProblemError } from "../src/index.ts";
import { injectAd, problem, REQUEST, setup } from "./client-fixture.ts";

test("an ad comes with its prompt, its id and its deadline, and the body goes out unchanged", async () => {
  const { relay, peer, eventsOf } = await setup({
    timeoutMs: 2000,
    traceHeaders: () => ({ traceparent: "t-1" }),
  });
  peer.onStart(() => {
    const answer = filled({ enhanced_prompt: "with ad" });
    return { ...answer, headers: { "X-Adrelay-Acknowledge-By": "2026-11-30T12:15:00.000Z" } };
  });
  const injected = await injectAd(relay);
  const [post] = peer.posts;
  expect(injected).toMatchObject({ prompt: "with ad", productName: "Velmora Drift" });
  expect(injected.acknowledgeBy).toEqual(new Date("2026-11-30T12:15:00.000Z"));
  expect(post?.fields).toEqual(REQUEST);
  expect(post?.headers).toMatchObject({ "x-adrelay-timeout-ms": "1750", traceparent: "t-1" });
  expect(eventsOf("injected")).toMatchObject([{ adResponseId: injected.adResponseId }]);
});

test.each([
  ["201", unfilled(201), { reason: "rejected" }],
  ["202", unfilled(202), { reason: "no_fill" }],
  [
    "a fallback",
    { ...unfilled(202), headers: { "X-Adrelay-Fallback": "timeout" } },
    { reason: "fallback", fallback: "timeout" },
  ],
  ["422", problem(422, "validation_failed"), { reason: "refused", error: { code: "validation_failed" } }],
  ["401", problem(401, "unauthenticated"), { reason: "refused", error: { code: "unauthenticated" } }],
  [
    "500",
    problem(500, "internal_error"),
    { reason: "failed", error: { code: "internal_error", status: 500 } },
  ],
  ["503 with Retry-After", problem(503, "queue_unavailable", { "Retry-After": "60" }), { reason: "failed" }],
  ["a new code", problem(400, "of_the_future"), { reason: "refused", error: { code: "of_the_future" } }],
  ["a page of a proxy", { kind: "raw", status: 200, bytes: "<html>" } as const, { reason: "failed" }],
  ["a 200 without a prompt", filled({ enhanced_prompt: null }), { reason: "failed" }],
  ["a redirect", { kind: "answer", status: 302, headers: { Location: "/" } } as const, { reason: "failed" }],
  ["a reset", { kind: "reset" } as const, { reason: "unreachable", error: { code: "unreachable" } }],
])("%s gives back the caller's prompt and says why", async (_name, behaviour, wanted) => {
  const { relay, peer, eventsOf } = await setup();
  peer.onStart(() => behaviour);
  const injection = await relay.inject(REQUEST);
  expect(injection).toMatchObject({ kind: "none", prompt: REQUEST.prompt, ...wanted });
  expect(eventsOf("not_injected")).toMatchObject([{ reason: wanted.reason }]);
  expect(peer.posts).toHaveLength(1);
});

test("a problem carries its code, its request id and its faults", async () => {
  const { relay, peer } = await setup();
  const faults = [{ path: "optional_context.age", message: "must be at most 120" }];
  const { body, ...answer } = problem(422, "validation_failed");
  peer.onStart(() => ({ ...answer, body: { ...body, errors: faults } }));
  const { error } = Object(await relay.inject(REQUEST));
  expect(error).toBeInstanceOf(RelayProblemError);
  expect(error).toMatchObject({ code: "validation_failed", status: 422, requestId: "r-1", faults });
  expect(error.message).toBe("A title; optional_context.age: must be at most 120");
});

test.each(["hang", "drip"] as const)(
  "a relay that %ss costs the chat its time limit and no more",
  async (kind) => {
    const { relay, peer } = await setup();
    peer.onStart(() => ({ kind }));
    const startedAtMs = performance.now();
    const injection = await relay.inject(REQUEST, { timeoutMs: 300 });
    const tookMs = performance.now() - startedAtMs;
    expect(injection).toMatchObject({ kind: "none", reason: "timeout", error: { code: "timeout" } });
    expect(tookMs).toBeGreaterThan(290);
    // Far from the 5 s after which the call itself is given up.
    expect(tookMs).toBeLessThan(3000);
  },
);

test("a signal ends the wait for an ad, before it and during it", async () => {
  const { relay, peer } = await setup();
  peer.onStart(() => ({ kind: "hang" }));
  const controller = new AbortController();
  const running = relay.inject(REQUEST, { signal: controller.signal });
  await eventually(() => expect(peer.posts).toHaveLength(1));
  controller.abort();
  expect(await running).toMatchObject({ kind: "none", reason: "aborted" });
  expect(await relay.inject(REQUEST, { signal: controller.signal })).toMatchObject({ reason: "aborted" });
  expect(peer.posts).toHaveLength(1);
});

test("an ad that comes after the time limit is acknowledged with an empty text", async () => {
  const { relay, peer, textsOf } = await setup();
  const id = "0f8fad5b-d9cb-469f-a165-70867728950e";
  peer.onStart(() => ({ kind: "late", delayMs: 200, answer: filled({ ad_response_id: id }) }));
  peer.onAcknowledge(() => acknowledged("no_ad_used"));
  expect(await relay.inject(REQUEST, { timeoutMs: 50 })).toMatchObject({ reason: "timeout" });
  await eventually(() => expect(textsOf(id)).toEqual([""]));
});

test("an ad that comes while the client closes isn't used, and is acknowledged with an empty text", async () => {
  const { relay, peer, textsOf, eventsOf } = await setup();
  const id = "0f8fad5b-d9cb-469f-a165-70867728950e";
  peer.onStart(() => ({ kind: "late", delayMs: 100, answer: filled({ ad_response_id: id }) }));
  const running = relay.inject(REQUEST);
  await eventually(() => expect(peer.posts).toHaveLength(1));
  const closing = relay.close();
  expect(await running).toMatchObject({ kind: "none", reason: "closed", prompt: REQUEST.prompt });
  expect(await closing).toBe(0);
  expect(textsOf(id)).toEqual([""]);
  expect(eventsOf("lost")).toEqual([]);
});

test("nothing that listens, and a request that JSON can't hold, are no errors of the chat", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const port = Object(server.address()).port;
  await new Promise((resolve) => server.close(resolve));
  const relay = createRelay({ url: `http://127.0.0.1:${port}/`, apiKey: "key" });
  expect(await relay.inject(REQUEST)).toMatchObject({ reason: "unreachable", prompt: REQUEST.prompt });
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  const odd = { ...REQUEST, extra: circular };
  expect(await relay.inject(odd)).toMatchObject({ reason: "unsendable", prompt: REQUEST.prompt });
  await relay.close();
  expect(await relay.inject(REQUEST)).toMatchObject({ reason: "closed", prompt: REQUEST.prompt });
});

test.each([
  ["url", { url: "relay:8080" }],
  ["url", { url: "http://relay/?a=b" }],
  ["apiKey", { apiKey: "" }],
  ["apiKey", { apiKey: "line\nbreak" }],
  ["timeoutMs", { timeoutMs: 0 }],
  ["timeoutMs", { timeoutMs: 30_001 }],
  ["retry.firstMs", { retry: { firstMs: 0.5 } }],
  ["verdictWaitSeconds", { verdictWaitSeconds: 31 }],
])("a wrong %s is refused by its name and without its value", (name, wrong) => {
  const make = () => createRelay({ url: "http://relay", apiKey: "key", ...wrong });
  expect(make).toThrow(RelayError);
  expect(make).toThrow(new RegExp(`^${name} must be [^?\\n]+$`));
  expect(make).not.toThrow(/relay:8080|a=b|30001/);
});
