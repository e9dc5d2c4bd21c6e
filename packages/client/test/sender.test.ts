import { randomUUID } from "node:crypto";
import { acknowledged, type Behaviour, eventually, filled, type ScriptedProvider } from "@adrelay/testkit";
import { expect, onTestFinished, test, vi } from "vitest";
import { injectAd, problem, REQUEST, setup } from "./client-fixture.ts";

const idsOf = ({ posts }: ScriptedProvider) =>
  posts.filter(({ operation }) => operation === "acknowledge").map(({ fields }) => fields["ad_response_id"]);

test.each([
  ["a reset", { kind: "reset" }],
  ["500", problem(500, "internal_error")],
  ["503", problem(503, "queue_unavailable")],
  ["401", problem(401, "unauthenticated")],
  ["404 of a proxy", { kind: "answer", status: 404 }],
  ["a page of a proxy", { kind: "raw", status: 200, bytes: "<html>" }],
] as const satisfies readonly (readonly [string, Behaviour])[])(
  "an acknowledgment that meets %s is sent again, byte for byte the same, until it is accepted",
  async (_name, fault) => {
    const { relay, peer, eventsOf } = await setup({ traceHeaders: () => ({ traceparent: "t-2" }) });
    peer.onAcknowledge((_post, count) => (count < 2 ? fault : acknowledged()));
    const injected = await injectAd(relay);
    expect(await injected.acknowledge("a \u{1f600} text \ud800")).toEqual({ kind: "waiting" });
    await eventually(() => expect(eventsOf("accepted")).toMatchObject([{ attempts: 3, status: "ok" }]));
    const posts = peer.acknowledgmentsOf(injected.adResponseId);
    expect(new Set(posts.map(({ body }) => body.toString("utf8"))).size).toBe(1);
    expect(posts.map(({ headers }) => headers["traceparent"])).toEqual(["t-2", "t-2", "t-2"]);
    expect(posts[0]?.headers["prefer"]).toBe("respond-async");
    expect(relay.pendingCount).toBe(0);
  },
);

test("an attempt that hangs ends at its limit and is made again", async () => {
  const { relay, peer, eventsOf } = await setup({ acknowledgeTimeoutMs: 100 });
  peer.onAcknowledge((_post, count) => (count === 0 ? { kind: "hang" } : acknowledged()));
  const injected = await injectAd(relay);
  expect(await injected.acknowledge("text")).toEqual({ kind: "waiting" });
  await eventually(() => expect(eventsOf("accepted")).toHaveLength(1));
  expect(eventsOf("retrying")).toMatchObject([{ error: { code: "timeout" } }]);
});

test.each([
  ["ok", 200, "ok"],
  ["no_ad_used", 200, "no_ad_used"],
  ["recoverable_error", 201, "recoverable_error"],
] as const)("a %s ends the acknowledgment as accepted", async (_name, status, verdict) => {
  const { relay, peer } = await setup({ verdictWaitSeconds: 5 });
  peer.onAcknowledge(() => ({ ...acknowledged(verdict), status }));
  const injected = await injectAd(relay);
  expect(await injected.acknowledge("text")).toMatchObject({ kind: "accepted", status: verdict });
  expect(await relay.flush()).toBe(0);
  expect(peer.acknowledgmentsOf(injected.adResponseId)).toHaveLength(1);
  expect(peer.acknowledgmentsOf(injected.adResponseId)[0]?.headers["prefer"]).toBe("wait=5");
});

test.each([
  [404, "unknown_ad_response"],
  [406, "not_acknowledgeable"],
  [409, "acknowledgment_conflict"],
  [422, "validation_failed"],
])("%i %s is final: it is reported with its code and never sent again", async (status, code) => {
  const { relay, peer, eventsOf } = await setup();
  peer.onAcknowledge(() => problem(status, code));
  const injected = await injectAd(relay);
  expect(await injected.acknowledge("text")).toMatchObject({ kind: "refused", error: { code, status } });
  expect(eventsOf("refused")).toMatchObject([{ adResponseId: injected.adResponseId, error: { code } }]);
  expect(await relay.flush()).toBe(0);
  expect(peer.acknowledgmentsOf(injected.adResponseId)).toHaveLength(1);
});

test("Retry-After keeps all acknowledgments from the relay for its time", async () => {
  const { relay, peer, eventsOf } = await setup();
  peer.onAcknowledge((_post, count) =>
    count === 0 && idsOf(peer).length === 1
      ? problem(503, "queue_unavailable", { "Retry-After": "1" })
      : acknowledged(),
  );
  const [first, second] = [await injectAd(relay), await injectAd(relay)];
  await first.acknowledge("text");
  expect(await second.acknowledge("text")).toEqual({ kind: "waiting" });
  await eventually(() => expect(eventsOf("accepted")).toHaveLength(2));
  const [one = 0, two = 0] = peer.posts
    .filter(({ operation }) => operation === "acknowledge")
    .map(({ atMs }) => atMs);
  expect(two - one).toBeGreaterThan(990);
});

test("while the relay is down one acknowledgment at a time tries it, and all go when it is back", async () => {
  const { relay, peer, eventsOf } = await setup({ retry: { firstMs: 50, maxMs: 100 } });
  let isDown = true;
  peer.onAcknowledge(() => (isDown ? { kind: "reset" } : acknowledged()));
  const ads = await Promise.all(Array.from({ length: 40 }, () => injectAd(relay)));
  const outcomes = await Promise.all(ads.map((ad) => ad.acknowledge("text")));
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["waiting"]));
  await eventually(() => expect(eventsOf("retrying").length).toBeGreaterThan(12));
  // The first eight went out before the first failure was known. After it they went one by one.
  expect(idsOf(peer).length).toBeLessThan(30);
  isDown = false;
  await eventually(() => expect(eventsOf("accepted")).toHaveLength(40));
});

test("an acknowledgment that fails by itself doesn't hold up the others", async () => {
  const { relay, peer, eventsOf } = await setup({ retry: { firstMs: 60_000, maxMs: 60_000 } });
  const odd = await injectAd(relay);
  peer.onAcknowledge(({ fields }) =>
    fields["ad_response_id"] === odd.adResponseId ? { kind: "answer", status: 403 } : acknowledged(),
  );
  expect(await odd.acknowledge("text")).toEqual({ kind: "waiting" });
  const others = await Promise.all(Array.from({ length: 20 }, () => injectAd(relay)));
  await Promise.all(others.map((ad) => ad.acknowledge("text")));
  expect(eventsOf("accepted")).toHaveLength(20);
  expect(relay.pendingCount).toBe(1);
});

test("the queue is bounded, and what it can't take is reported as lost", async () => {
  const { relay, peer, eventsOf } = await setup({
    pendingMax: 2,
    pendingCharsMax: 100,
    retry: { firstMs: 60_000 },
  });
  peer.onAcknowledge(() => ({ kind: "reset" }));
  const ads = [await injectAd(relay), await injectAd(relay), await injectAd(relay), await injectAd(relay)];
  expect(await ads[0]?.acknowledge("x".repeat(90))).toEqual({ kind: "waiting" });
  expect(await ads[1]?.acknowledge("x".repeat(11))).toMatchObject({
    kind: "lost",
    error: { code: "outbox_full" },
  });
  expect(await ads[2]?.acknowledge("x".repeat(10))).toEqual({ kind: "waiting" });
  expect(await ads[3]?.acknowledge("")).toMatchObject({ kind: "lost", error: { code: "outbox_full" } });
  expect(eventsOf("lost").map(({ adResponseId }) => adResponseId)).toEqual([
    ads[1]?.adResponseId,
    ads[3]?.adResponseId,
  ]);
});

test("an acknowledgment is given up at its age, and reported as lost", async () => {
  const { relay, peer, eventsOf } = await setup({ retry: { firstMs: 10, maxMs: 20, giveUpAfterMs: 100 } });
  peer.onAcknowledge(() => problem(500, "internal_error"));
  const ad = await injectAd(relay);
  await ad.acknowledge("text");
  await eventually(() => expect(eventsOf("lost")).toMatchObject([{ error: { code: "gave_up" } }]));
  expect(relay.pendingCount).toBe(0);
});

test("close sends what waits at once, and says what it couldn't send", async () => {
  const { relay, peer, eventsOf } = await setup({ retry: { firstMs: 60_000, maxMs: 60_000 } });
  peer.onAcknowledge((_post, count) => (count === 0 ? { kind: "reset" } : acknowledged()));
  const ads = await Promise.all(Array.from({ length: 5 }, () => injectAd(relay)));
  await Promise.all(ads.map((ad) => ad.acknowledge("text")));
  await eventually(() => expect(eventsOf("retrying")).toHaveLength(5));
  expect(relay.pendingCount).toBe(5);
  peer.onAcknowledge(({ fields }) =>
    fields["ad_response_id"] === ads[0]?.adResponseId ? { kind: "hang" } : acknowledged(),
  );
  expect(await relay.close({ timeoutMs: 500 })).toBe(1);
  expect(await relay.close()).toBe(1);
  expect(eventsOf("accepted")).toHaveLength(4);
  expect(eventsOf("lost")).toMatchObject([{ adResponseId: ads[0]?.adResponseId, error: { code: "closed" } }]);
});

test("what is acknowledged while close sends is sent, too", async () => {
  const { relay, peer, textsOf, eventsOf } = await setup();
  const late = randomUUID();
  const first = await injectAd(relay);
  peer.onStart(() => ({ kind: "late", delayMs: 100, answer: filled({ ad_response_id: late }) }));
  peer.onAcknowledge(({ fields }) =>
    fields["ad_response_id"] === late
      ? acknowledged()
      : { kind: "late", delayMs: 1000, answer: acknowledged() },
  );
  expect(await relay.inject(REQUEST, { timeoutMs: 20 })).toMatchObject({ reason: "timeout" });
  void first.acknowledge("text");
  expect(await relay.close()).toBe(0);
  expect([...textsOf(first.adResponseId), ...textsOf(late)]).toEqual(["text", ""]);
  expect(eventsOf("lost")).toEqual([]);
});

test("close doesn't wait for verdicts: what waits for one is sent again without", async () => {
  const { relay, peer, eventsOf } = await setup({ verdictWaitSeconds: 30 });
  const prefer = () => peer.acknowledgmentsOf(ad.adResponseId).map(({ headers }) => headers["prefer"]);
  peer.onAcknowledge(({ headers }) =>
    headers["prefer"] === "wait=30" ? { kind: "hang" } : acknowledged("recoverable_error"),
  );
  const ad = await injectAd(relay);
  const acknowledging = ad.acknowledge("text");
  await eventually(() => expect(prefer()).toEqual(["wait=30"]));
  expect(await relay.close()).toBe(0);
  expect(await acknowledging).toMatchObject({ kind: "accepted", status: "recoverable_error" });
  expect(prefer()).toEqual(["wait=30", "respond-async"]);
  expect([...eventsOf("lost"), ...eventsOf("retrying")]).toEqual([]);
});

test("acknowledge waits for a verdict as long as the relay may", async () => {
  const { relay, peer } = await setup({ verdictWaitSeconds: 10, acknowledgeTimeoutMs: 50 });
  peer.onAcknowledge(() => ({ kind: "late", delayMs: 300, answer: acknowledged() }));
  const ad = await injectAd(relay);
  expect(await ad.acknowledge("text")).toMatchObject({ kind: "accepted", status: "ok" });
});

test("waitUntil gets a promise that lasts until the relay has the acknowledgment", async () => {
  const waited: Promise<unknown>[] = [];
  const { relay, peer, eventsOf } = await setup();
  peer.onAcknowledge((_post, count) => (count < 2 ? { kind: "reset" } : acknowledged()));
  const request = { prompt: "p", request_context: { session_id: randomUUID() } };
  async function* answer() {
    yield "text";
  }
  const stream = await relay.withAd(request, answer, { waitUntil: (promise) => waited.push(promise) });
  expect(waited).toHaveLength(1);
  for await (const _text of stream) {
    // The whole answer is read.
  }
  expect(waited).toHaveLength(2);
  await Promise.all(waited);
  expect(eventsOf("accepted")).toMatchObject([{ attempts: 3 }]);
});

const fail = () => {
  throw new TypeError("a hook's own fault");
};

test.each([
  ["throw", fail],
  // In JavaScript any function can be async.
  ["reject", (async () => fail()) as unknown as typeof fail],
])("hooks that %s don't reach the chat or end the process", async (_way, hook) => {
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  onTestFinished(() => void process.off("unhandledRejection", unhandled));
  const { relay, peer } = await setup({ onEvent: hook, traceHeaders: hook, waitUntil: hook });
  const injected = await injectAd(relay);
  expect(await injected.acknowledge("text")).toMatchObject({ kind: "accepted" });
  expect(peer.acknowledgmentsOf(injected.adResponseId)).toHaveLength(1);
  expect(unhandled).not.toHaveBeenCalled();
});
