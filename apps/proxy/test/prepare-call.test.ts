/** Which ad a call gets, on a real Redis and against a scripted ad service. */
import { randomUUID } from "node:crypto";
import type { Caller } from "@adrelay/relay-kit";
import { eventually, filled, startSocketProxy, unfilled } from "@adrelay/testkit";
import { describe, expect, onTestFinished, test } from "vitest";
import type { StepSink } from "../src/http/call.ts";
import {
  CONTEXT,
  chat,
  filledBody,
  openServers,
  openTurns,
  PROMPT_WITH_AD,
  surfaceCall,
  toolAnswer,
} from "./turns-fixture.ts";

const servers = await openServers();

/** A chat whose message has several texts. */
const chatOf = (...texts: readonly string[]) =>
  chat("", { messages: [{ role: "user", content: texts.map((text) => ({ type: "text", text })) }] });

const NO_CALLS = { callIds: [] };
const text = (written: string) => ({ text: written, ...NO_CALLS });
const calls = (...callIds: string[]) => ({ text: "", callIds });

describe("a new message", () => {
  test("with an ad is acknowledged with exactly the text that was written", async () => {
    const turns = await openTurns(servers);
    const call = surfaceCall(turns, chat());
    const prepared = await turns.prepareCall(call);
    expect(prepared.ad).toEqual({ state: "injected", reason: undefined });
    const sent = JSON.parse(prepared.body.toString("utf8"));
    expect(sent).toEqual(chat(PROMPT_WITH_AD));
    expect(await turns.stateOf(prepared.adResponseId)).toBe("awaiting");
    prepared.step?.written(text("Take the "));
    prepared.step?.written(text("Velmora Drift. ☀"));
    prepared.step?.ended({ kind: "complete" }, 200);
    await eventually(async () =>
      expect(await turns.queuedText(prepared.adResponseId)).toBe("Take the Velmora Drift. ☀"),
    );
    expect(await turns.stateOf(prepared.adResponseId)).toBe("queued");
    expect(turns.journal.usedBytes).toBe(0);
  });

  test("three times the same makes three turns", async () => {
    const turns = await openTurns(servers);
    const ids = new Set<string | undefined>();
    for (let time = 0; time < 3; time += 1) {
      const { step, adResponseId } = await turns.prepareCall(surfaceCall(turns, chat()));
      step?.written(text(`answer ${time}`));
      step?.ended({ kind: "complete" }, 200);
      await eventually(async () => expect(await turns.queuedText(adResponseId)).toBe(`answer ${time}`));
      ids.add(adResponseId);
    }
    expect(ids.size).toBe(3);
  });

  test("twice at once makes two turns", async () => {
    const turns = await openTurns(servers);
    const both = [0, 1].map(() => turns.prepareCall(surfaceCall(turns, chat())));
    const [first, second] = await Promise.all(both);
    expect(first?.adResponseId).toBeDefined();
    expect(first?.adResponseId).not.toBe(second?.adResponseId);
  });

  test("reaches the ad service with the context and the user's text only", async () => {
    const turns = await openTurns(servers);
    const headers = { ...CONTEXT, "x-adrelay-country": "DE", "x-adrelay-wrapping-type": "plain" };
    await turns.prepareCall(surfaceCall(turns, chat(), { headers }));
    expect(servers.provider.posts.at(-1)?.fields).toEqual({
      prompt: "Which shoes?",
      request_context: { session_id: "session-1", user_agent: "Mozilla/5.0", user_ip: "203.0.113.9" },
      request_configuration: { wrapping_type: "plain" },
      optional_context: { country: "DE" },
    });
  });

  test("of several texts is judged as a whole, and the ad goes into its last text", async () => {
    const turns = await openTurns(servers);
    servers.provider.onStart(({ fields }) => filled({ enhanced_prompt: `<ad>\n${fields["prompt"]}\n</ad>` }));
    const call = surfaceCall(turns, chatOf("I am sad.", "Which shoes?"));
    const prepared = await turns.prepareCall(call);
    expect(servers.provider.posts.at(-1)?.fields["prompt"]).toBe("I am sad.\n\nWhich shoes?");
    const expected = chatOf("I am sad.", "<ad>\nWhich shoes?\n</ad>");
    expect(JSON.parse(prepared.body.toString("utf8"))).toEqual(expected);
    // A retry finds the same prompt.
    prepared.step?.ended({ kind: "failed" }, 500);
    await eventually(async () => {
      const retried = await turns.prepareCall({ ...call, bodyAtMs: performance.now() });
      expect(retried.adResponseId).toBe(prepared.adResponseId);
      expect(JSON.parse(retried.body.toString("utf8"))).toEqual(expected);
    });
  });

  test.each([CONTEXT, { ...CONTEXT, "x-adrelay-acknowledge": "manual" }])(
    "of several texts that the ad service changed goes without the ad, which is acknowledged empty",
    async (headers) => {
      const turns = await openTurns(servers);
      const id = randomUUID();
      servers.provider.onStart(() => ({ kind: "answer", status: 200, body: filledBody(id) }));
      const call = surfaceCall(turns, chatOf("I am sad.", "Which shoes?"), { headers });
      const prepared = await turns.prepareCall(call);
      expect(prepared).toMatchObject({
        ad: { state: "fallback", reason: "message_changed" },
        step: undefined,
      });
      expect(prepared.body).toBe(call.body);
      await eventually(async () => expect(await turns.queuedText(id)).toBe(""));
      expect(turns.journal.usedBytes).toBe(0);
    },
  );

  test("whose ad the model's server refuses is acknowledged empty, once", async () => {
    const turns = await openTurns(servers);
    const { step, adResponseId } = await turns.prepareCall(surfaceCall(turns, chat()));
    step?.refused(422);
    step?.written(text("an answer to the original"));
    step?.ended({ kind: "complete" }, 200);
    await eventually(async () => expect(await turns.queuedText(adResponseId)).toBe(""));
  });

  test("of a backend that acknowledges by itself has an ad and no journal", async () => {
    const turns = await openTurns(servers);
    const headers = { ...CONTEXT, "x-adrelay-acknowledge": "manual" };
    const prepared = await turns.prepareCall(surfaceCall(turns, chat(), { headers }));
    expect(prepared).toMatchObject({ ad: { state: "injected" }, step: { readsAnswer: false } });
    expect(JSON.parse(prepared.body.toString("utf8"))).toEqual(chat(PROMPT_WITH_AD));
    expect(await turns.stateOf(prepared.adResponseId)).toBe("awaiting");
    expect(await turns.redis.exists(turns.keysOf(prepared.adResponseId).turn)).toBe(0);
    prepared.step?.ended({ kind: "complete" }, 200);
    expect(turns.journal.usedBytes).toBe(0);
    expect(await turns.stateOf(prepared.adResponseId)).toBe("awaiting");
  });

  test.each([
    ["refuses the ad", (step: StepSink) => step.refused(422)],
    ["is overloaded", (step: StepSink) => step.ended({ kind: "failed" }, 529)],
    ["gives no answer", (step: StepSink) => step.ended({ kind: "cut" }, undefined)],
  ])(
    "of a backend that acknowledges by itself is acknowledged empty if the model's server %s",
    async (_, end) => {
      const turns = await openTurns(servers);
      const headers = { ...CONTEXT, "x-adrelay-acknowledge": "manual" };
      const { step, adResponseId } = await turns.prepareCall(surfaceCall(turns, chat(), { headers }));
      end(step ?? expect.fail("there is no step"));
      step?.ended({ kind: "complete" }, 200);
      await eventually(async () => expect(await turns.queuedText(adResponseId)).toBe(""));
      expect(await turns.stateOf(adResponseId)).toBe("queued");
    },
  );
});

describe("no ad is asked for", () => {
  const prefilled = chat("Which shoes?", {
    messages: [
      { role: "user", content: "Which shoes?" },
      { role: "assistant", content: "Take" },
    ],
  });
  test.each([
    ["off", chat(), { ...CONTEXT, "x-adrelay-ad": "Off" }],
    ["prefill", prefilled, CONTEXT],
    ["choices", chat("Which shoes?", { n: 2 }), CONTEXT],
    ["unknown_step", toolAnswer("call_unknown"), CONTEXT],
    ["not_json", "{", CONTEXT],
  ])("and the reason is %s", async (reason, body, headers) => {
    const turns = await openTurns(servers);
    const before = turns.posts();
    const call = surfaceCall(turns, body, { headers });
    const prepared = await turns.prepareCall(call);
    expect(prepared.ad).toEqual({ state: "skipped", reason });
    expect(prepared.body).toBe(call.body);
    expect(turns.posts()).toBe(before);
  });

  test.each([
    ["no_context", "X-Adrelay-User-IP", { "x-adrelay-user-ip": "" }],
    ["unknown_value", "X-Adrelay-Ad", { "x-adrelay-ad": "false" }],
    ["unknown_value", "X-Adrelay-Acknowledge", { "x-adrelay-acknowledge": "manuel" }],
  ])("and the reason is %s, with the header %s named", async (reason, detail, headers) => {
    const turns = await openTurns(servers);
    const before = turns.posts();
    const call = surfaceCall(turns, chat(), { headers: { ...CONTEXT, ...headers } });
    const prepared = await turns.prepareCall(call);
    expect(prepared.ad).toEqual({ state: "skipped", reason, detail });
    expect(prepared.body).toBe(call.body);
    expect(turns.posts()).toBe(before);
  });

  test("over the publisher's quota", async () => {
    const quotas = { requestsPerSecond: 1, burst: 1, injectionsInFlight: 1 };
    const unlimited = { bytes: Number.POSITIVE_INFINITY };
    const turns = await openTurns(servers, {
      quotas: {
        ...quotas,
        bytesPerSecond: Number.POSITIVE_INFINITY,
        bytesBurst: Number.POSITIVE_INFINITY,
        bytesInFlight: unlimited,
        queuedBytes: unlimited,
        deadBytes: unlimited,
        unknownBytes: unlimited,
      },
    });
    const first = await turns.prepareCall(surfaceCall(turns, chat()));
    const before = turns.posts();
    const second = await turns.prepareCall(surfaceCall(turns, chat()));
    expect(first.ad.state).toBe("injected");
    expect(second.ad).toEqual({ state: "skipped", reason: "overloaded", detail: "requests_per_second" });
    expect(turns.posts()).toBe(before);
  });

  test("while the journal has no room", async () => {
    const turns = await openTurns(servers, { maxBytes: 100 });
    const { step } = await turns.prepareCall(surfaceCall(turns, chat()));
    step?.written(text("x".repeat(100)));
    const before = turns.posts();
    const { ad } = await turns.prepareCall(surfaceCall(turns, chat()));
    expect(ad).toEqual({ state: "skipped", reason: "overloaded" });
    expect(turns.posts()).toBe(before);
  });

  test.each(["canBook", "canOpen"])("while Redis takes no bookings (%s)", async (name) => {
    const turns = await openTurns(servers, { [name]: () => false });
    const before = turns.posts();
    const { ad } = await turns.prepareCall(surfaceCall(turns, chat()));
    expect(ad).toEqual({ state: "fallback", reason: "store_unavailable" });
    expect(turns.posts()).toBe(before);
  });
});

describe("the original prompt goes to the model", () => {
  const fault = { detail: [{ loc: ["body", "optional_context", "age"], msg: "wrong", type: "value_error" }] };
  test.each([
    ["no_fill", undefined, unfilled(202)],
    ["rejected", undefined, unfilled(201)],
    ["fallback", "provider_error", { kind: "answer", status: 500 }],
    ["fallback", "connection_lost", { kind: "reset" }],
    ["fallback", "malformed_answer", { kind: "answer", status: 200, body: { ok: true } }],
    ["fallback", "request_refused", { kind: "answer", status: 422, body: fault }],
  ] as const)("if the ad service answers %s (%s)", async (state, reason, behaviour) => {
    const turns = await openTurns(servers);
    servers.provider.onStart(() => behaviour);
    const call = surfaceCall(turns, chat());
    const prepared = await turns.prepareCall(call);
    expect(prepared).toMatchObject({ ad: { state, reason }, adResponseId: undefined, step: undefined });
    expect(prepared.body).toBe(call.body);
  });

  test("and the headers that the ad service refuses are named", async () => {
    const turns = await openTurns(servers);
    const errors = [{ path: "optional_context.country", message: "USA must be a code of two letters" }];
    const body = { code: "validation_failed", errors };
    servers.provider.onStart(() => ({ kind: "answer", status: 422, body }));
    const { ad } = await turns.prepareCall(surfaceCall(turns, chat()));
    expect(ad).toEqual({ state: "fallback", reason: "request_refused", detail: "X-Adrelay-Country" });
  });

  test("within the budget if the ad service hangs, and a late ad is abandoned", async () => {
    const turns = await openTurns(servers, { injectionTimeoutMs: 400 });
    const id = randomUUID();
    const answer = { kind: "answer", status: 200, body: filledBody(id) } as const;
    const late = Promise.withResolvers<void>();
    servers.provider.onStart(() => ({ kind: "held", until: late.promise, answer }));
    const startedAtMs = performance.now();
    const { ad } = await turns.prepareCall(surfaceCall(turns, chat()));
    expect(performance.now() - startedAtMs).toBeLessThan(2500);
    expect(ad).toEqual({ state: "fallback", reason: "timeout" });
    late.resolve();
    await eventually(async () => expect(await turns.stateOf(id)).toBe("abandoned"));
  });

  test("within the budget if Redis hangs before the look-up", async () => {
    const turns = await openTurns(servers, { injectionTimeoutMs: 400 });
    await servers.server.freeze();
    const startedAtMs = performance.now();
    const prepared = await turns.prepareCall(surfaceCall(turns, chat()));
    const next = await turns.prepareCall(surfaceCall(turns, toolAnswer("call_1")));
    const passedMs = performance.now() - startedAtMs;
    await servers.server.thaw();
    expect(passedMs).toBeLessThan(1300);
    expect(prepared).toMatchObject({ ad: { state: "fallback", reason: "not_booked" }, step: undefined });
    expect(next.ad).toEqual({ state: "fallback", reason: "store_unavailable" });
  });

  test("if Redis hangs before the booking, and the ad isn't missed", async () => {
    const turns = await openTurns(servers, { injectionTimeoutMs: 1000 });
    const id = randomUUID();
    servers.provider.onStart(() => {
      void servers.server.freeze();
      return { kind: "answer", status: 200, body: filledBody(id) };
    });
    const call = surfaceCall(turns, chat());
    const prepared = await turns.prepareCall(call);
    await servers.server.thaw();
    expect(prepared.ad).toEqual({ state: "fallback", reason: "not_booked" });
    expect(prepared.body).toBe(call.body);
    // Either the opening came through, and the sweep will acknowledge it, or the ad is abandoned.
    await eventually(async () => expect(["awaiting", "abandoned"]).toContain(await turns.stateOf(id)));
    const isOpen = await turns.redis.exists(turns.keysOf(id).turn);
    expect(isOpen).toBe((await turns.stateOf(id)) === "awaiting" ? 1 : 0);
  });

  test.each(["opened late", "opened with a lost answer"])(
    "if a manual turn is %s, which the proxy then acknowledges empty",
    async (how) => {
      const proxy = await startSocketProxy(servers.server.port);
      onTestFinished(() => proxy.close());
      const redisUrl = `redis://127.0.0.1:${proxy.port}`;
      const turns = await openTurns(servers, { redisUrl, injectionTimeoutMs: 1000 });
      const id = randomUUID();
      servers.provider.onStart(() => {
        proxy.setReplyDelay(1500);
        return { kind: "answer", status: 200, body: filledBody(id) };
      });
      const headers = { ...CONTEXT, "x-adrelay-acknowledge": "manual" };
      const prepared = await turns.prepareCall(surfaceCall(turns, chat(), { headers }));
      expect(prepared.ad).toEqual({ state: "fallback", reason: "not_booked" });
      if (how === "opened with a lost answer") {
        proxy.cut();
      }
      proxy.setReplyDelay(0);
      await eventually(async () => expect(await turns.stateOf(id)).toBe("queued"));
      expect(await turns.queuedText(id)).toBe("");
    },
  );

  test("if the retry's look-up is slow, and its turn waits on", async () => {
    const proxy = await startSocketProxy(servers.server.port);
    onTestFinished(() => proxy.close());
    const redisUrl = `redis://127.0.0.1:${proxy.port}`;
    const turns = await openTurns(servers, { redisUrl, injectionTimeoutMs: 4000 });
    const first = await turns.prepareCall(surfaceCall(turns, chat()));
    first.step?.ended({ kind: "failed" }, 503);
    const { turn } = turns.keysOf(first.adResponseId);
    await eventually(async () => expect(await servers.admin.hexists(turn, "l1")).toBe(0));
    proxy.setReplyDelay(700);
    const second = await turns.prepareCall(surfaceCall(turns, chat()));
    expect(second.adResponseId).not.toBe(first.adResponseId);
    proxy.setReplyDelay(0);
    await eventually(async () => {
      const fields = await servers.admin.hgetall(turn);
      expect(fields).toMatchObject({ n: "2", w: expect.any(String) });
      expect(fields).not.toHaveProperty("l2");
    });
  });

  test("if the caller hangs up during the ad call, and the ad is abandoned", async () => {
    const turns = await openTurns(servers);
    const id = randomUUID();
    const caller: { isGone: boolean; onGone: Caller["onGone"] } = { isGone: false, onGone: undefined };
    servers.provider.onStart(() => {
      caller.isGone = true;
      caller.onGone?.();
      const answer = { kind: "answer", status: 200, body: filledBody(id) } as const;
      return { kind: "late", delayMs: 50, answer };
    });
    const { ad } = await turns.prepareCall(surfaceCall(turns, chat(), { caller }));
    expect(ad).toEqual({ state: "fallback", reason: "caller_gone" });
    await eventually(async () => expect(await turns.stateOf(id)).toBe("abandoned"));
  });

  test("if the ad service answers with an id that is known", async () => {
    const turns = await openTurns(servers);
    const id = randomUUID();
    servers.provider.onStart(() => ({ kind: "answer", status: 200, body: filledBody(id) }));
    expect((await turns.prepareCall(surfaceCall(turns, chat()))).ad.state).toBe("injected");
    const second = await turns.prepareCall(surfaceCall(turns, chat()));
    expect(second.ad).toEqual({ state: "fallback", reason: "not_booked" });
  });
});

describe("a later call of a turn", () => {
  test.each([
    ["was offered", {}],
    // A server may have tools of its own, and leave it to the client to run them.
    ["nobody offered", { tools: undefined }],
  ])("that answers a call of a tool that %s has the same ad, and one text", async (_, more) => {
    const turns = await openTurns(servers);
    const first = await turns.prepareCall(surfaceCall(turns, chat(undefined, more)));
    const before = turns.posts();
    first.step?.written(text("Let me look. "));
    first.step?.sawCalls(["call_1"]);
    first.step?.written(calls("call_1"));
    first.step?.ended({ kind: "continues" }, 200);
    const second = await eventually(async () => {
      const prepared = await turns.prepareCall(surfaceCall(turns, toolAnswer("call_1")));
      expect(prepared.ad.state).toBe("injected");
      return prepared;
    });
    expect(second.adResponseId).toBe(first.adResponseId);
    expect(turns.posts()).toBe(before);
    expect(JSON.parse(second.body.toString("utf8")).messages[0].content).toBe(PROMPT_WITH_AD);
    second.step?.written(text("It is sunny."));
    second.step?.ended({ kind: "complete" }, 200);
    await eventually(async () =>
      expect(await turns.queuedText(first.adResponseId)).toBe("Let me look. \n\nIt is sunny."),
    );
    const third = await turns.prepareCall(surfaceCall(turns, toolAnswer("call_1")));
    expect(third.ad).toEqual({ state: "skipped", reason: "turn_ended" });
  });

  test("of another session, or below another user text, is unknown", async () => {
    const turns = await openTurns(servers);
    const { step } = await turns.prepareCall(surfaceCall(turns, chat()));
    step?.written(calls("call_1"));
    step?.ended({ kind: "continues" }, 200);
    await eventually(async () => {
      const joined = await turns.prepareCall(surfaceCall(turns, toolAnswer("call_1")));
      expect(joined.ad.state).toBe("injected");
    });
    const headers = { ...CONTEXT, "x-adrelay-session-id": "session-2" };
    const otherSession = await turns.prepareCall(surfaceCall(turns, toolAnswer("call_1"), { headers }));
    const otherText = await turns.prepareCall(surfaceCall(turns, toolAnswer("call_1", "Which hat?")));
    expect([otherSession.ad.reason, otherText.ad.reason]).toEqual(["unknown_step", "unknown_step"]);
  });

  test("of a backend that acknowledges by itself doesn't get the ad of an earlier turn with the same ids", async () => {
    const turns = await openTurns(servers);
    const first = await turns.prepareCall(surfaceCall(turns, chat()));
    first.step?.written(calls("search:0"));
    first.step?.ended({ kind: "continues" }, 200);
    const toolCall = toolAnswer("search:0");
    const headers = { ...CONTEXT, "x-adrelay-acknowledge": "manual" };
    await eventually(async () => {
      const joined = await turns.prepareCall(surfaceCall(turns, toolCall));
      expect(joined.adResponseId).toBe(first.adResponseId);
    });
    const manual = await turns.prepareCall(surfaceCall(turns, toolCall, { headers }));
    expect(manual).toMatchObject({ ad: { state: "skipped", reason: "unknown_step" }, step: undefined });
  });

  test("that repeats a failed one joins its turn, alone and without a new ad", async () => {
    const turns = await openTurns(servers);
    const first = await turns.prepareCall(surfaceCall(turns, chat()));
    first.step?.ended({ kind: "failed" }, 429);
    const { turn } = turns.keysOf(first.adResponseId);
    await eventually(async () => expect(await turns.redis.hexists(turn, "l1")).toBe(0));
    const [second, third] = await Promise.all(
      [0, 1].map(() => turns.prepareCall(surfaceCall(turns, chat()))),
    );
    const joined = [second, third].filter((prepared) => prepared?.adResponseId === first.adResponseId);
    expect(joined).toHaveLength(1);
    joined[0]?.step?.written(text("now it works"));
    joined[0]?.step?.ended({ kind: "complete" }, 200);
    await eventually(async () => expect(await turns.queuedText(first.adResponseId)).toBe("now it works"));
    const fourth = await turns.prepareCall(surfaceCall(turns, chat()));
    expect(fourth.ad).toEqual({ state: "injected", reason: undefined });
    expect(fourth.adResponseId).not.toBe(first.adResponseId);
  });

  test("that repeats one of which text was written is a new turn", async () => {
    const turns = await openTurns(servers);
    const first = await turns.prepareCall(surfaceCall(turns, chat()));
    first.step?.written(text("half an ans"));
    first.step?.ended({ kind: "cut" }, 200);
    await eventually(async () => expect(await turns.queuedText(first.adResponseId)).toBe("half an ans"));
    const second = await turns.prepareCall(surfaceCall(turns, chat()));
    expect(second.adResponseId).not.toBe(first.adResponseId);
  });
});

test("no text, session, prompt or id of a tool call is in the logs", async () => {
  const turns = await openTurns(servers);
  const secrets = [
    "canary-session",
    "canary-agent",
    "canary-text",
    "canary-call",
    "canary-answer",
    "Velmora",
  ];
  const headers = {
    ...CONTEXT,
    "x-adrelay-session-id": "canary-session",
    "x-adrelay-user-agent": "canary-agent",
  };
  const call = () => surfaceCall(turns, chat("canary-text"), { headers });
  const { step } = await turns.prepareCall(call());
  step?.written(text("canary-answer"));
  step?.written(calls("canary-call"));
  step?.ended({ kind: "continues" }, 200);
  turns.redis.disconnect();
  await turns.prepareCall(surfaceCall(turns, toolAnswer("canary-call", "canary-text"), { headers }));
  await turns.prepareCall(call());
  expect(turns.lines.length).toBeGreaterThan(0);
  for (const secret of secrets) {
    expect(turns.lines.join("")).not.toContain(secret);
  }
});
