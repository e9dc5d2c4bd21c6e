/** The journal on a real Redis: batches, leases, outages, and what is kept in memory. */

import { adResponseIdSchema } from "@adrelay/contract";
import type { StepWrite, Turns } from "@adrelay/store";
import { eventually, pause, startSocketProxy, sumOf } from "@adrelay/testkit";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  chat,
  type FixtureOptions,
  filledBody,
  openServers,
  openTurns,
  surfaceCall,
  type TurnsFixture,
  toolAnswer,
} from "./turns-fixture.ts";

const servers = await openServers();

/** Takes no time, so that a step's end follows its text at once. */

const text = (written: string) => ({ text: written, callIds: [] });

/** Starts a turn whose ad went into a prompt. */
async function startTurn(options: FixtureOptions = {}) {
  const turns = await openTurns(servers, options);
  return { turns, ...(await beginStep(turns)) };
}

/** Nothing is looked for of an ad without a name. So the turn's end waits for no thread to begin, which takes long on a busy machine. */
async function startUnsearchedTurn(options: FixtureOptions = {}) {
  const turns = await openTurns(servers, options);
  const body = { ...filledBody(), product_name: null };
  servers.provider.onStart(() => ({ kind: "answer", status: 200, body }));
  return { turns, ...(await beginStep(turns)) };
}

async function beginStep(turns: TurnsFixture, message?: string) {
  const { ad, step, adResponseId } = await turns.prepareCall(surfaceCall(turns, chat(message)));
  const id = adResponseId ?? expect.fail(`there is no ad: ${ad.reason}`);
  const { turn, text: textKey } = turns.keysOf(id);
  return { step: step ?? expect.fail("there is no step"), id, turnKey: turn, textKey };
}

/** Counts the writes of a store, and keeps what they had. */
function countWrites() {
  const seen: StepWrite[] = [];
  const wrapTurns = (turns: Turns): Turns => ({
    open: (turn) => turns.open(turn),
    hold: (turn) => turns.hold(turn),
    catchUp: () => turns.catchUp(),
    join: (question) => turns.join(question),
    endStep: (ended) => turns.endStep(ended),
    settle: (final) => turns.settle(final),
    write: (writes) => {
      seen.push(...writes);
      return turns.write(writes);
    },
  });
  return { seen, wrapTurns };
}

describe("appending", () => {
  test("a turn that is over at once is never appended to", async () => {
    const { seen, wrapTurns } = countWrites();
    const { turns, step, id } = await startUnsearchedTurn({ wrapTurns });
    step.written(text("short"));
    step.ended({ kind: "complete" }, 200);
    await eventually(async () => expect(await turns.queuedText(id)).toBe("short"));
    expect(seen).toEqual([]);
  });

  test("the text of a running step reaches Redis, in rising sequences", async () => {
    const { seen, wrapTurns } = countWrites();
    const { turns, step, id, textKey } = await startTurn({ wrapTurns });
    for (let part = 1; part <= 3; part += 1) {
      step.written(text(`part ${part}. `));
      await eventually(async () => expect(await turns.redis.llen(textKey)).toBe(part));
    }
    // A write is repeated if Redis is slow.
    const written = new Map(seen.map((write) => [write.sequence, write.text]));
    expect([...written.keys()]).toEqual([1, 2, 3]);
    expect([...written.values()].join("")).toBe("part 1. part 2. part 3. ");
    step.ended({ kind: "complete" }, 200);
    await eventually(async () => expect(await turns.queuedText(id)).toBe("part 1. part 2. part 3. "));
    expect(await turns.redis.exists(textKey)).toBe(0);
  });

  test("the texts of many steps go together in few calls", async () => {
    let calls = 0;
    const wrapTurns = (turns: Turns): Turns => ({
      ...countWrites().wrapTurns(turns),
      write: (writes) => {
        // Others only keep leases.
        calls += writes.some(({ text: written }) => written !== "") ? 1 : 0;
        return turns.write(writes);
      },
    });
    const turns = await openTurns(servers, { wrapTurns });
    const steps: Awaited<ReturnType<typeof beginStep>>[] = [];
    for (let at = 0; at < 40; at += 1) {
      steps.push(await beginStep(turns, `message ${at}`));
    }
    for (const { step } of steps) {
      step.written(text("a part of it"));
    }
    await eventually(async () => {
      const lengths = await Promise.all(steps.map(({ textKey }) => turns.redis.llen(textKey)));
      expect(lengths.every((length) => length === 1)).toBe(true);
    });
    expect(calls).toBeLessThanOrEqual(4);
  });

  test("a pair of surrogates in two events stays one character", async () => {
    const { turns, step, id, textKey } = await startTurn();
    step.written(text("smile \ud83d"));
    await eventually(async () => expect(await turns.redis.llen(textKey)).toBe(1));
    step.written(text("\ude00 and wave"));
    await eventually(async () => expect(await turns.redis.llen(textKey)).toBe(2));
    const stored = (await turns.redis.lrange(textKey, 0, -1)).join("");
    expect(stored).toContain("😀 and wave");
    step.ended({ kind: "complete" }, 200);
    await eventually(async () => expect(await turns.queuedText(id)).toBe("smile 😀 and wave"));
  });

  test("a step that is silent keeps its lease", async () => {
    const { turns, step, id, turnKey } = await startTurn();
    const leaseOf = async () => Number(await turns.redis.hget(turnKey, "l1"));
    const first = await leaseOf();
    await eventually(async () => expect(await leaseOf()).toBeGreaterThan(first + 4000));
    step.written(text("at last"));
    step.ended({ kind: "complete" }, 200);
    await eventually(async () => expect(await turns.queuedText(id)).toBe("at last"));
  });

  test("of two steps at once the last to end settles both texts", async () => {
    const { turns, step, id, turnKey } = await startTurn();
    step.written({ text: "I look. ", callIds: ["call_1"] });
    step.ended({ kind: "continues" }, 200);
    await eventually(async () => expect(await turns.redis.hexists(turnKey, "l1")).toBe(0));
    const [second, third] = await Promise.all(
      [0, 1].map(() => turns.prepareCall(surfaceCall(turns, toolAnswer("call_1")))),
    );
    expect([second?.adResponseId, third?.adResponseId]).toEqual([id, id]);
    third?.step?.written(text("Third."));
    third?.step?.ended({ kind: "complete" }, 200);
    const leases = async () => (await turns.redis.hkeys(turnKey)).filter((field) => /^l\d+$/.test(field));
    await eventually(async () => expect(await leases()).toHaveLength(1));
    expect(await turns.queuedText(id)).toBeUndefined();
    second?.step?.written(text("Second."));
    second?.step?.ended({ kind: "complete" }, 200);
    await eventually(async () =>
      expect(await turns.queuedText(id)).toMatch(/^I look\. \n\n(Second\.\n\nThird\.|Third\.\n\nSecond\.)$/),
    );
  });

  test("text over the limit is cut off and counted once", async () => {
    const { turns, step, id } = await startTurn({ textLimitBytes: 10 });
    for (const part of ["123456", "7é", "é", "tail"]) {
      step.written(text(part));
    }
    step.ended({ kind: "complete" }, 200);
    await eventually(async () => expect(await turns.queuedText(id)).toBe("1234567é"));
    expect(sumOf(await turns.metrics(), "adrelay_turns_truncated_total")).toBe(1);
  });
});

describe("while Redis is away", () => {
  test("text is kept, and settled exactly once Redis is back", async () => {
    const { turns, step, id, textKey } = await startTurn();
    step.written(text("before, "));
    await eventually(async () => expect(await turns.redis.llen(textKey)).toBe(1));
    await servers.server.crash();
    step.written(text("during, "));
    await eventually(() => expect(turns.lines.join("")).toContain("turn_write_failed"));
    step.written(text("and at the end"));
    step.ended({ kind: "complete" }, 200);
    await servers.server.restart();
    await eventually(async () => expect(await turns.queuedText(id)).toBe("before, during, and at the end"));
    expect(turns.journal.usedBytes).toBe(0);
  });

  test("a hanging Redis delays nothing, and no text is doubled by a repeated write", async () => {
    const { turns, step, id, textKey } = await startTurn();
    step.written(text("one, "));
    await eventually(async () => expect(await turns.redis.llen(textKey)).toBe(1));
    await servers.server.freeze();
    const startedAtMs = performance.now();
    step.written(text("two, "));
    expect(performance.now() - startedAtMs).toBeLessThan(500);
    await eventually(() => expect(turns.lines.join("")).toContain("turn_write_failed"));
    await servers.server.thaw();
    await eventually(async () => expect(await turns.redis.llen(textKey)).toBe(2));
    step.written(text("three"));
    await eventually(async () => expect(await turns.redis.llen(textKey)).toBe(3));
    step.ended({ kind: "cut" }, 200);
    await eventually(async () => expect(await turns.queuedText(id)).toBe("one, two, three"));
  });

  test("a step that ends after a write of unknown fate loses and doubles nothing", async () => {
    const proxy = await startSocketProxy(servers.server.port);
    onTestFinished(() => proxy.close());
    const { turns, step, turnKey, textKey } = await startTurn({
      redisUrl: `redis://127.0.0.1:${proxy.port}`,
    });
    step.sawCalls(["call_1"]);
    step.written({ text: "I look. ", callIds: ["call_1"] });
    proxy.setReplyDelay(3000);
    await eventually(async () => expect(await servers.admin.llen(textKey)).toBe(1));
    step.written(text("More. "));
    step.ended({ kind: "continues" }, 200);
    await eventually(() => expect(turns.lines.join("")).toContain("turn_write_failed"));
    proxy.setReplyDelay(0);
    proxy.cut();
    await eventually(async () => expect(await servers.admin.hexists(turnKey, "l1")).toBe(0));
    const stored = await servers.admin.lrange(textKey, 0, -1);
    expect(stored).toHaveLength(2);
    expect(stored[0]).toContain("I look. ");
    expect(stored[1]).toContain("More. ");
  });

  test("the hold of each tool call is on its way at once, also while no hold is confirmed", async () => {
    const proxy = await startSocketProxy(servers.server.port);
    onTestFinished(() => proxy.close());
    const { turns, step, id } = await startTurn({ redisUrl: `redis://127.0.0.1:${proxy.port}` });
    const held = () => servers.admin.keys(`{adrelay:${turns.partition}}:awaiting:by:*`);
    // From now on Redis knows the script.
    step.sawCalls(["call_1"]);
    await eventually(async () => expect(await held()).toHaveLength(1));
    proxy.setReplyDelay(60_000);
    step.sawCalls(["call_2"]);
    step.sawCalls(["call_3"]);
    await eventually(async () => expect(await held()).toHaveLength(3));
    step.written({ text: "I look.", callIds: ["call_1", "call_2", "call_3"] });
    proxy.setReplyDelay(0);
    proxy.cut();
    step.ended({ kind: "continues" }, 200);
    await eventually(() => expect(turns.journal.usedBytes).toBe(0));
    const next = await turns.prepareCall(surfaceCall(turns, toolAnswer("call_3")));
    expect(next.adResponseId).toBe(id);
  });

  test("if the hold with the prompt fails, the next one brings it", async () => {
    let failing: readonly string[] | undefined;
    const wrapTurns = (turns: Turns): Turns => ({
      ...countWrites().wrapTurns(turns),
      hold: (turn) => {
        failing ??= turn.pointers;
        return turn.pointers === failing ? Promise.reject(new TypeError("lost")) : turns.hold(turn);
      },
    });
    const { turns, step, id } = await startTurn({ wrapTurns });
    step.sawCalls(["call_1"]);
    await eventually(() => expect(turns.lines.join("")).toContain("turn_write_failed"));
    step.sawCalls(["call_2"]);
    await eventually(async () => {
      const next = await turns.prepareCall(surfaceCall(turns, toolAnswer("call_2")));
      expect(next).toMatchObject({ ad: { state: "injected" }, adResponseId: id });
    });
    failing = [];
    step.written({ text: "I look.", callIds: ["call_1", "call_2"] });
    step.ended({ kind: "continues" }, 200);
    await eventually(async () => {
      const next = await turns.prepareCall(surfaceCall(turns, toolAnswer("call_1")));
      expect(next.adResponseId).toBe(id);
    });
  });

  test.each(["a later write", "the end"])(
    "text that Redis loses is found missing by %s, and sent again",
    async (by) => {
      const { turns, step, turnKey, textKey } = await startTurn();
      step.sawCalls(["call_1"]);
      const written = async (parts: readonly string[]) => {
        for (const [at, part] of parts.entries()) {
          step.written({ text: part, callIds: [] });
          await eventually(async () => expect(await servers.admin.llen(textKey)).toBe(at + 1));
        }
      };
      await written(["one, ", "two, ", "three, "]);
      // As a Redis that has lost its last second. The proxy may not have read the answer to its last write yet.
      await servers.admin.multi().ltrim(textKey, 0, 0).hset(turnKey, "s1", 1).exec();
      if (by === "a later write") {
        const lease = Number(await servers.admin.hget(turnKey, "l1"));
        step.written(text("four, "));
        await eventually(async () =>
          expect(Number(await servers.admin.hget(turnKey, "l1"))).toBeGreaterThan(lease),
        );
      }
      step.written({ text: "five", callIds: ["call_1"] });
      step.ended({ kind: "continues" }, 200);
      await eventually(async () => expect(await servers.admin.hexists(turnKey, "l1")).toBe(0));
      const whole = by === "a later write" ? "one, two, three, four, five" : "one, two, three, five";
      expect(await servers.admin.lrange(textKey, 0, -1)).toEqual(["1,1,one, ", `1,*,${whole}`]);
      expect(turns.journal.usedBytes).toBe(0);
    },
  );

  test("connections that break again and again lose and double no text", async () => {
    const proxy = await startSocketProxy(servers.server.port);
    onTestFinished(() => proxy.close());
    const turns = await openTurns(servers, { redisUrl: `redis://127.0.0.1:${proxy.port}` });
    const steps: Awaited<ReturnType<typeof beginStep>>[] = [];
    for (let at = 0; at < 20; at += 1) {
      steps.push(await beginStep(turns, `message ${at}`));
    }
    const written = steps.map(() => "");
    for (let part = 0; part < 60; part += 1) {
      for (const [at, { step }] of steps.entries()) {
        const piece = `${at}.${part} `;
        step.written(text(piece));
        written[at] += piece;
      }
      if (part % 10 === 5) {
        proxy.setReplyDelay(part % 20 === 5 ? 900 : 0);
        proxy.cut();
      }
      await pause(30);
    }
    for (const { step } of steps) {
      step.ended({ kind: "complete" }, 200);
    }
    proxy.cut();
    proxy.setReplyDelay(0);
    await eventually(() => expect(turns.journal.usedBytes).toBe(0));
    const queued = await Promise.all(steps.map(({ id }) => turns.queuedText(id)));
    expect(queued).toEqual(written);
    expect(sumOf(await turns.metrics(), "adrelay_turns_lost_text_total")).toBe(0);
  });

  test("a stop ends within its time and counts the texts that are lost", async () => {
    const { turns, step } = await startTurn();
    step.written(text("nobody will know"));
    await servers.server.crash();
    step.ended({ kind: "cut" }, 200);
    const startedAtMs = performance.now();
    await turns.journal.stop(AbortSignal.timeout(500));
    expect(performance.now() - startedAtMs).toBeLessThan(2000);
    expect(sumOf(await turns.metrics(), "adrelay_turns_lost_text_total")).toBe(1);
    expect(turns.journal.usedBytes).toBe(0);
    await servers.server.restart();
  });

  test("texts in memory are bounded, and what has no room is counted", async () => {
    const turns = await openTurns(servers, { maxBytes: 100_000 });
    const first = await beginStep(turns);
    const second = await beginStep(turns);
    await servers.server.crash();
    for (let part = 0; part < 100; part += 1) {
      first.step.written(text("x".repeat(4000)));
      second.step.written(text("y".repeat(4000)));
    }
    expect(turns.journal.usedBytes).toBeLessThan(105_000);
    first.step.ended({ kind: "complete" }, 200);
    second.step.ended({ kind: "complete" }, 200);
    await servers.server.restart();
    await eventually(() => expect(turns.journal.usedBytes).toBe(0));
    expect(sumOf(await turns.metrics(), "adrelay_turns_lost_text_total")).toBe(2);
    expect(await turns.queuedText(first.id)).toMatch(/^x{40000,}$/);
  });
});

describe("a prompt is in memory", () => {
  const long = "Which shoes? ".repeat(5000);

  test("until Redis has it, and not in later steps", async () => {
    const turns = await openTurns(servers);
    servers.provider.onStart(() => ({
      kind: "answer",
      status: 200,
      body: { ...filledBody(), enhanced_prompt: `${long}<ad>` },
    }));
    const first = await turns.prepareCall(surfaceCall(turns, chat()));
    first.step?.written(text("Let me look. "));
    expect(turns.journal.usedBytes).toBeGreaterThan(long.length);
    first.step?.sawCalls(["call_1"]);
    await eventually(() => expect(turns.journal.usedBytes).toBeLessThan(100));
    first.step?.sawCalls(["call_2"]);
    first.step?.written({ text: "", callIds: ["call_1", "call_2"] });
    first.step?.ended({ kind: "continues" }, 200);
    await eventually(() => expect(turns.journal.usedBytes).toBe(0));
    const next = await turns.prepareCall(surfaceCall(turns, toolAnswer("call_2")));
    expect(next.ad.state).toBe("injected");
    expect(next.body.toString()).toContain(`${long}<ad>`);
    expect(turns.journal.usedBytes).toBe(0);
    next.step?.ended({ kind: "complete" }, 200);
  });
});

describe("a turn that is over for Redis", () => {
  test("is journaled no more, and its late text is counted once", async () => {
    const { seen, wrapTurns } = countWrites();
    const { turns, step, id } = await startTurn({ wrapTurns });
    const ref = { id: adResponseIdSchema.parse(id), publisher: turns.publisher.id, step: 1 };
    const final = {
      step: ref,
      outcome: "cut",
      text: "first",
      requestId: "r",
      traceparent: undefined,
    } as const;
    expect(await turns.store.turns.settle(final)).toBe("queued");
    step.written(text("too late"));
    await eventually(() => expect(seen).toHaveLength(1));
    await eventually(() => {
      step.written(text("."));
      expect(turns.journal.usedBytes).toBeGreaterThan(0);
    });
    step.ended({ kind: "complete" }, 200);
    await eventually(async () =>
      expect(sumOf(await turns.metrics(), "adrelay_turns_late_text_total")).toBe(1),
    );
    expect(seen).toHaveLength(1);
    expect(await turns.queuedText(id)).toBe("first");
    expect(turns.journal.usedBytes).toBe(0);
  });

  test("isn't late if all its text was there before", async () => {
    const { turns, step, id } = await startUnsearchedTurn();
    const ref = { id: adResponseIdSchema.parse(id), publisher: turns.publisher.id, step: 1 };
    step.written(text("the answer"));
    const final = {
      step: ref,
      outcome: "complete",
      text: "the answer",
      requestId: "r",
      traceparent: undefined,
    } as const;
    await turns.store.turns.settle(final);
    step.ended({ kind: "complete" }, 200);
    await eventually(() => expect(turns.journal.usedBytes).toBe(0));
    expect(sumOf(await turns.metrics(), "adrelay_turns_late_text_total")).toBe(0);
  });
});

test("a Redis that has lost the turn takes its end as an unknown acknowledgment", async () => {
  const { turns, step, id, textKey } = await startTurn();
  step.written(text("the whole "));
  await eventually(async () => expect(await turns.redis.llen(textKey)).toBe(1));
  await servers.admin.flushall();
  step.written(text("answer"));
  await eventually(() => expect(turns.journal.usedBytes).toBeGreaterThan(0));
  step.ended({ kind: "complete" }, 200);
  await eventually(async () => expect(await turns.queuedText(id)).toBe("the whole answer"));
});
