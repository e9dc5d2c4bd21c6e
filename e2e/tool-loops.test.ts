/**
 * Guards the turns of several steps: one ad and one acknowledgment for all of them, whichever proxies they pass, however long
 * they take, and whatever else has the same text and the same ids.
 */
import { randomUUID } from "node:crypto";
import { eventually, fetchLedgerMetrics, fetchMetrics, pause, relayCaller, sumOf } from "@adrelay/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  DIALECTS,
  type RunningStep,
  type StartStep,
  type StepQuestion,
  startChat,
  startMessage,
  startResponse,
} from "./model-proxy/loop-steps.ts";
import { headersOf, type ProxyStack, startProxyStack } from "./model-proxy/proxy-stack.ts";

const ACK_DEADLINE_MS = 3000;
const TURN_WAIT_MS = 9000;
/** Longer than the deadline, shorter than the wait: how long tools and users take. */
const TOOL_MS = 5000;
const BEFORE_TOOLS = "Let me look that up.";

let stack: ProxyStack;

beforeAll(async () => {
  const env = { ACK_DEADLINE_MS: String(ACK_DEADLINE_MS), PROXY_TURN_WAIT_MS: String(TURN_WAIT_MS) };
  stack = await startProxyStack({ proxies: 2, env });
});
afterAll(() => stack.stop());

/** A user's conversation of one message, whose steps may go to any proxy. */
function converse(start: StartStep, userText: string, session: string = randomUUID()) {
  const begin = (proxy: number, answered: StepQuestion["answered"], more: Partial<StepQuestion> = {}) =>
    start({ proxyUrl: String(stack.proxyUrls[proxy]), session, userText, answered, ...more });
  const run = async (...question: Parameters<typeof begin>): Promise<RunningStep> => {
    const step = await begin(...question);
    await step.ended;
    return step;
  };
  const bodies = async () =>
    (await stack.model.calls())
      .filter(({ headers }) => headers["x-run"] === session)
      .map(({ body }) => body.toString("utf8"));
  return { session, begin, run, bodies };
}

/** The ad that a prompt or an answer names. */
function adsIn(text: string): string[] {
  return [...new Set(text.match(/Velmora \d+/g))];
}

const textOf = (steps: readonly RunningStep[]) => steps.map(({ text }) => text).join("\n\n");

describe.concurrent("turns that take long", () => {
  const AWAITING = { state: "awaiting", deadline_at: null };
  const stateOf = async (id: string | undefined) =>
    (await relayCaller(stack.relay.gatewayUrl).lookUp(String(id))).body;

  test("are never missed, however far they pass the deadline and the lease", async () => {
    const user = converse(startChat, "Say so first, then use the tool.");
    const first = await user.begin(0, [], { fault: "delay=2500" });
    const startedAtMs = performance.now();
    const isPast = () => expect(performance.now() - startedAtMs).toBeGreaterThan(2 * ACK_DEADLINE_MS);
    await eventually(isPast);
    expect(await stateOf(first.id)).toMatchObject(AWAITING);
    await first.ended;
    // A lease has 20 seconds.
    expect(performance.now() - startedAtMs).toBeGreaterThan(20_000);
    expect(await stateOf(first.id)).toMatchObject(AWAITING);
    await pause(TOOL_MS);
    expect(await stateOf(first.id)).toMatchObject(AWAITING);
    const second = await user.run(1, [first.callIds]);
    expect(second.id).toBe(first.id);
    expect(await stack.acknowledgedText(first.id)).toBe(textOf([first, second]));
  });

  test("because a user approves late go on with their ad", async () => {
    const user = converse(startResponse, "Say so first, then ask for approval.");
    const asking = await user.run(0, []);
    expect(asking.callIds).toEqual([expect.stringMatching(/^mcpr_/)]);
    await pause(TOOL_MS);
    const approved = await user.run(1, [asking.callIds]);
    expect(approved).toMatchObject({ ad: "injected", id: asking.id });
    expect(await stack.acknowledgedText(asking.id)).toBe(textOf([asking, approved]));
  });

  test("because the model pauses go on with their ad", async () => {
    const user = converse(startMessage, "Say so first, then pause the turn.");
    const paused = await user.run(0, []);
    expect(paused.callIds).toEqual([expect.stringMatching(/^srvtoolu_/)]);
    await pause(TOOL_MS);
    const resumed = await user.run(1, [paused.callIds]);
    expect(resumed).toMatchObject({ ad: "injected", id: paused.id });
    expect(await stack.acknowledgedText(paused.id)).toBe(textOf([paused, resumed]));
  });
});

describe.concurrent.each(DIALECTS)("%s", (_dialect, start) => {
  test("a loop of four steps over two proxies has one ad and one acknowledgment", async () => {
    const user = converse(start, "Say so first, then use the tool in 3 rounds.");
    const steps: RunningStep[] = [];
    for (let round = 0; round < 4; round += 1) {
      const answered = steps.map(({ callIds }) => callIds);
      steps.push(await user.run(round % 2, answered));
    }
    expect(steps.map(({ ad }) => ad)).toEqual(Array(4).fill("injected"));
    expect(new Set(steps.map(({ id }) => id)).size).toBe(1);
    expect(stack.adCallsOf(user.session)).toHaveLength(1);
    expect(await stack.acknowledgedText(steps[0]?.id)).toBe(textOf(steps));
    const named = adsIn(textOf(steps));
    expect(named).toHaveLength(1);
    expect((await user.bodies()).map(adsIn)).toEqual(Array(4).fill(named));
  });

  test("steps that begin before the first has ended are of its turn", async () => {
    const user = converse(start, "Say so first, then use two tools.");
    const first = await user.begin(0, [], { fault: "delay=400" });
    await eventually(() => expect(first.callIds).toHaveLength(2));
    const [one = "", other = ""] = first.callIds;
    const second = await user.begin(1, [[one]], { fault: "delay=60" });
    const third = await user.begin(0, [[other]], { fault: "delay=66" });
    expect(first.isOver).toBe(false);
    await Promise.all([first.ended, second.ended, third.ended]);
    expect(new Set([first, second, third].map(({ id }) => id)).size).toBe(1);
    expect(await stack.acknowledgedText(first.id, TURN_WAIT_MS / 2)).toBe(textOf([first, second, third]));
    expect(stack.adCallsOf(user.session)).toHaveLength(1);
  });

  test("a first step that ends last lets the turn wait for nothing", async () => {
    const user = converse(start, "Say so first, then use two tools.");
    const first = await user.begin(0, [], { fault: "delay=500" });
    await eventually(() => expect(first.callIds).toHaveLength(2));
    const second = await user.run(1, [first.callIds]);
    expect(first.isOver).toBe(false);
    await first.ended;
    expect(await stack.acknowledgedText(first.id, TURN_WAIT_MS / 2)).toBe(textOf([first, second]));
  });

  test("a step that the model's server refuses once is repeated in its turn", async () => {
    const user = converse(start, "Say so first, then use the tool.");
    const first = await user.run(0, []);
    const more = { fault: "status=429;times=1", maxRetries: 1 };
    const second = await user.run(1, [first.callIds], more);
    expect(second).toMatchObject({ ad: "injected", id: first.id });
    expect(await stack.acknowledgedText(first.id)).toBe(textOf([first, second]));
    expect(stack.adCallsOf(user.session)).toHaveLength(1);
    expect((await user.bodies()).map(adsIn)).toEqual(Array(3).fill(adsIn(second.text)));
  });

  test("a step whose caller hangs up before any text is repeated in its turn", async () => {
    const user = converse(start, "Say so first, then use the tool.");
    const first = await user.run(0, []);
    const caller = new AbortController();
    const lost = user.begin(1, [first.callIds], { fault: "slow-headers=60000", signal: caller.signal });
    await eventually(async () => expect(await user.bodies()).toHaveLength(2));
    caller.abort();
    await expect(lost).rejects.toThrow();
    const again = await user.run(0, [first.callIds]);
    expect(again.id).toBe(first.id);
    expect(await stack.acknowledgedText(first.id)).toBe(textOf([first, again]));
  });

  test("a step that never comes leaves the text so far, and a late one has no ad", async () => {
    const user = converse(start, "Say so first, then use the tool.");
    const first = await user.run(0, []);
    expect(await stack.acknowledgedText(first.id, 3 * TURN_WAIT_MS)).toBe(first.text);
    expect(first.text.trim()).toBe(BEFORE_TOOLS);
    const late = await user.run(1, [first.callIds]);
    expect(late).toMatchObject({ ad: "skipped; reason=turn_ended", id: undefined });
    expect(adsIn(late.text)).toEqual([]);
    expect(adsIn(String((await user.bodies()).at(-1)))).toEqual([]);
    expect(stack.adCallsOf(user.session)).toHaveLength(1);
    expect(stack.textsOf(String(first.id))).toHaveLength(1);
  });

  test("ids that repeat from turn to turn never join two turns", async () => {
    const user = converse(start, "Say so first, use the tool, and number the calls.");
    const ended = [await user.run(0, [])];
    ended.push(await user.run(1, [["weather:0"]]));
    expect(ended[1]).toMatchObject({ ad: "injected", id: ended[0]?.id });
    expect(await stack.acknowledgedText(ended[0]?.id)).toBe(textOf(ended));
    const left = await user.run(0, []);
    const loop = [await user.run(1, [])];
    loop.push(await user.run(0, [["weather:0"]]));
    expect([...ended, left, ...loop].flatMap(({ callIds }) => callIds)).toEqual(Array(3).fill("weather:0"));
    expect(new Set([ended[0]?.id, left.id, loop[0]?.id]).size).toBe(3);
    expect(loop[1]).toMatchObject({ ad: "injected", id: loop[0]?.id });
    expect(await stack.acknowledgedText(loop[0]?.id)).toBe(textOf(loop));
    expect(adsIn(textOf(loop))).not.toEqual(adsIn(textOf(ended)));
    expect(await stack.acknowledgedText(left.id, 3 * TURN_WAIT_MS)).toBe(left.text);
  });

  test("users with the same text and the same ids share nothing", async () => {
    const users = Array.from({ length: 6 }, () =>
      converse(start, "Say so first, use two tools, and number the calls."),
    );
    const firsts = await Promise.all(users.map((user, at) => user.run(at % 2, [])));
    const lasts = await Promise.all(
      users.map((user, at) => user.run((at + 1) % 2, [["weather:0", "news:1"]])),
    );
    expect(new Set(firsts.map(({ id }) => id)).size).toBe(users.length);
    expect(lasts.map(({ id }) => id)).toEqual(firsts.map(({ id }) => id));
    expect(new Set(lasts.flatMap(({ text }) => adsIn(text))).size).toBe(users.length);
    for (const [at, first] of firsts.entries()) {
      const last = lasts[at] ?? expect.fail("a step is missing");
      expect(await stack.acknowledgedText(first.id)).toBe(textOf([first, last]));
    }
    const stranger = await converse(start, "Say so first, use two tools, and number the calls.").run(0, [
      ["weather:0", "news:1"],
    ]);
    expect(stranger).toMatchObject({ ad: "skipped; reason=unknown_step", id: undefined });
    expect(adsIn(stranger.text)).toEqual([]);
  });
});

/** The steps of a loop that isn't streamed, with a tool that takes no time. */
async function runWhole(start: number): Promise<{ ads: Set<string>; text: string; id: string | undefined }> {
  const session = randomUUID();
  const tools = [{ type: "function", function: { name: "weather", parameters: {} } }];
  const messages: unknown[] = [{ role: "user", content: "Say so first, then use the tool in 2 rounds." }];
  const texts: string[] = [];
  const ads = new Set<string>();
  for (let round = 0; round < 3; round += 1) {
    const answer = await fetch(`${String(stack.proxyUrls[(start + round) % 2])}/v1/chat/completions`, {
      method: "POST",
      headers: { ...headersOf(session), Authorization: "Bearer k", "Content-Type": "application/json" },
      body: JSON.stringify({ model: "m", tools, messages }),
    });
    const [ad, id] = ["x-adrelay-ad", "x-adrelay-ad-response-id"].map((name) => answer.headers.get(name));
    ads.add(`${ad} ${id}`);
    const { message } = Object(await answer.json()).choices[0];
    texts.push(message.content);
    const calls: { id: string }[] = message.tool_calls ?? [];
    messages.push(message, ...calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "sunny" })));
  }
  const [id] = stack.adIds.filter((adId) => stack.sessionOf(adId) === session);
  return { ads, text: texts.join("\n\n"), id };
}

test("loops that aren't streamed find their turns, however fast their tools are", async () => {
  for (let batch = 0; batch < 15; batch += 1) {
    const loops = await Promise.all([0, 1, 2, 3].map(runWhole));
    expect(loops.map(({ ads }) => [...ads])).toEqual(loops.map(({ id }) => [`injected ${id}`]));
    for (const { id, text } of loops) {
      expect(await stack.acknowledgedText(id)).toBe(text);
    }
  }
});

test("in the end the books of all processes balance, and no ad was missed", async () => {
  for (const url of stack.opsUrls) {
    await eventually(async () => expect(sumOf(await fetchMetrics(url), "adrelay_turns_open")).toBe(0));
    const samples = await fetchLedgerMetrics(url);
    expect(samples.get("adrelay_books_imbalance")).toBe(0);
    expect(sumOf(samples, "adrelay_acknowledgments_missed_total")).toBe(0);
  }
  const samples = await fetchLedgerMetrics(stack.relay.gatewayOpsUrl);
  const ended = sumOf(samples, "adrelay_turns_total");
  expect(ended).toBe(sumOf(samples, "adrelay_turns_opened_total"));
  // On a machine that stands still for longer than a booking may take, an ad isn't used.
  const unused = sumOf(samples, "adrelay_acknowledgments", { state: "abandoned" });
  expect(ended + unused).toBe(stack.adIds.length);
});
