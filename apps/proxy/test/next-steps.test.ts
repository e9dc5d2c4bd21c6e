/** Next steps that come by another proxy, while Redis is behind with what was sent to it. */
import { eventually, pause } from "@adrelay/testkit";
import { expect, test } from "vitest";
import { chat, openServers, openTurns, surfaceCall, type TurnsFixture, toolAnswer } from "./turns-fixture.ts";

const servers = await openServers();

/** For about 100 ms: longer than it takes to send a few commands. */
const BUSY_ROUNDS = 10_000_000;
const BEGUN_AFTER_MS = 20;

/** Keeps Redis from reading. Afterwards it reads the connection of this command before those that were idle. */
async function keepBusy({ redis }: TurnsFixture): Promise<void> {
  void redis.eval("for _ = 1, ARGV[1] do end", 0, BUSY_ROUNDS).catch(() => {});
  await pause(BEGUN_AFTER_MS);
}

/** Two proxies on one store. Redis knows all scripts, because there was a turn before. */
async function openProxies() {
  const first = await openTurns(servers);
  const second = await openTurns(servers, { partition: first.partition });
  const before = await openTurn(first, "Which hat?");
  before.step.sawCalls(["before"]);
  await eventually(async () => {
    const next = await second.prepareCall(surfaceCall(second, toolAnswer("before", "Which hat?")));
    expect(next.adResponseId).toBe(before.id);
  });
  return { first, second };
}

/** Opens a turn in the only session. */
async function openTurn(turns: TurnsFixture, text?: string) {
  const { step, adResponseId } = await turns.prepareCall(surfaceCall(turns, chat(text)));
  return { step: step ?? expect.fail("there is no ad"), id: adResponseId };
}

test("a next step finds its turn though Redis reads its question before the hold", async () => {
  const { first, second } = await openProxies();
  const turn = await openTurn(first);
  await keepBusy(second);
  turn.step.sawCalls(["search:0"]);
  const next = await second.prepareCall(surfaceCall(second, toolAnswer("search:0")));
  expect(next.adResponseId).toBe(turn.id);
});

test("a next step never finds an earlier turn with the same ids and the same text, though Redis reads its question first", async () => {
  const { first, second } = await openProxies();
  const left = await openTurn(first);
  left.step.written({ text: "I look. ", callIds: ["search:0"] });
  left.step.ended({ kind: "continues" }, 200);
  const turn = await openTurn(first);
  await keepBusy(second);
  turn.step.sawCalls(["search:0"]);
  const next = await second.prepareCall(surfaceCall(second, toolAnswer("search:0")));
  expect(next.adResponseId).toBe(turn.id);
});
