import { expect, test } from "vitest";
import { checkTurns } from "./checks.ts";
import {
  type EvidenceChange,
  entryIn,
  makeCall,
  makeEvidence,
  planOf,
  spanAt,
  TEXT,
} from "./checks-fixture.ts";
import type { TurnsEvidence } from "./evidence.ts";
import type { CallerPlan } from "./steps.ts";

const brokenOf = (evidence: TurnsEvidence) =>
  checkTurns(evidence).flatMap(({ name, broken }) => (broken.length > 0 ? [name] : []));
const brokenBy = (change: EvidenceChange) => brokenOf(makeEvidence(change));

const kill = (fromMs: number) => spanAt({ kind: "kill", app: "proxy-1" }, fromMs, 500);
const posted = (chars: number) => ({ turn: { postedTexts: [TEXT.slice(0, chars)] } });

const ALL_RECEIVED = "all that a caller received is acknowledged";
const TWO_BATCHES = "a proxy that died costs two batches at most";
const NO_MISSED = "no ad is missed or late, however long its turn runs";

test("a turn that went well breaks no check", () => {
  expect(brokenBy({})).toEqual([]);
});

test("an ad that was missed, acknowledged late or not delivered is found", () => {
  const missed = brokenBy({ turn: { entry: entryIn("missed"), posts: 0, postedTexts: [] } });
  expect(missed).toContain(NO_MISSED);
  expect(missed).toContain("a turn that outlives ACK_DEADLINE_MS is delivered");
  expect(brokenBy({ turn: { entry: entryIn("delivered", true) } })).toEqual([NO_MISSED]);
  expect(brokenBy({ turn: { entry: entryIn("dead") } })).toContain(
    "each ad that reached a caller is delivered",
  );
});

test("a character too few is found while the proxy lives", () => {
  expect(brokenBy(posted(49))).toEqual([ALL_RECEIVED]);
  expect(brokenBy(posted(51))).toEqual([]);
});

test("after a kill only the text of the last moments may be missing", () => {
  expect(brokenBy({ ...posted(40), spans: [kill(5000)] })).toEqual([]);
  expect(brokenBy({ ...posted(39), spans: [kill(5000)] })).toEqual([TWO_BATCHES]);
});

test("the kill of another proxy, or one before or after the turn, excuses nothing", () => {
  const ofOther = spanAt({ kind: "kill", app: "proxy-2" }, 4000, 500);
  for (const span of [ofOther, kill(-1000), kill(31_000)]) {
    expect(brokenBy({ ...posted(49), spans: [span] })).toEqual([ALL_RECEIVED]);
  }
});

test("text that came while Redis was away may be missing if the proxy then dies", () => {
  const away = spanAt({ kind: "redis_freeze" }, 2500, 2000);
  expect(brokenBy({ ...posted(10), spans: [kill(5000), away] })).toEqual([]);
  const later = spanAt({ kind: "redis_freeze" }, 3500, 1000);
  expect(brokenBy({ ...posted(10), spans: [kill(5000), later] })).toEqual([TWO_BATCHES]);
  expect(brokenBy({ ...posted(0), spans: [away] })).toEqual([ALL_RECEIVED]);
});

test("a proxy that stood still for longer than a lease counts as dead, a shorter halt doesn't", () => {
  const freeze = (lastsMs: number) => spanAt({ kind: "freeze", app: "proxy-1" }, 5000, lastsMs);
  expect(brokenBy({ ...posted(40), spans: [freeze(23_000)] })).toEqual([]);
  expect(brokenBy({ ...posted(30), spans: [freeze(2000)] })).toEqual([ALL_RECEIVED]);
});

test("a proxy that is told to stop loses nothing, unless Redis is away", () => {
  const restart = spanAt({ kind: "restart", app: "proxy-1" }, 5000, 1500);
  expect(brokenBy({ ...posted(49), spans: [restart] })).toEqual([ALL_RECEIVED]);
  const away = spanAt({ kind: "redis_kill" }, 6000, 1000);
  expect(brokenBy({ ...posted(40), spans: [restart, away] })).toEqual([]);
  expect(brokenBy({ ...posted(39), spans: [restart, away] })).toEqual([TWO_BATCHES]);
});

test("another text than the model's, and a second text, are found", () => {
  const other = `${TEXT.slice(0, 50)}!`;
  expect(brokenBy({ turn: { postedTexts: [other] } })).toEqual([
    "an acknowledged text is of its steps, in their order",
  ]);
  expect(brokenBy({ turn: { postedTexts: [TEXT.slice(0, 50), TEXT] } })).toEqual([
    "an ad has one text in all posts",
  ]);
});

test("a prompt without its ad, and an ad of another session, are found", () => {
  expect(
    brokenBy({ calls: [makeCall({ ad: "fallback; reason=timeout", adResponseId: undefined })] }),
  ).toContain("each prompt has its ad, and nothing else is changed");
  const evidence = makeEvidence({});
  const [ad] = evidence.sold.values();
  const sold = new Map([["id", { ...(ad ?? expect.fail("no ad")), session: "another" }]]);
  expect(brokenOf({ ...evidence, sold })).toContain("no ad gets into another session");
});

test("a refusal that reaches the caller, and a 409 for a backend, are found", () => {
  const plan = { ...planOf(false), isRefused: true };
  const refused = makeCall({ status: 422, text: "", arrivals: [], promptHash: undefined });
  expect(brokenBy({ plan, calls: [refused] })).toEqual(["no caller sees that an ad was refused"]);
  const evidence = makeEvidence({});
  const acknowledgments = [{ adResponseId: "id", text: "", statuses: [503, 409] }];
  const streams = evidence.streams.map((stream) => ({ ...stream, acknowledgments }));
  expect(brokenOf({ ...evidence, streams })).toContain("no backend's acknowledgment is refused");
});

test("a slow caller whose answer was cut needn't have all that it received, others must", () => {
  const withCaller = (caller: CallerPlan) => {
    const plan = planOf(false);
    return { ...plan, steps: plan.steps.map((step) => ({ ...step, caller })) };
  };
  const slow = withCaller({ kind: "slow", everyBytes: 1, pauseMs: 1 });
  expect(brokenBy({ ...posted(20), plan: slow })).toEqual([]);
  expect(brokenBy({ ...posted(20), plan: slow, calls: [makeCall({ plan: slow, end: "whole" })] })).toEqual([
    ALL_RECEIVED,
  ]);
  expect(brokenBy({ ...posted(20), plan: withCaller({ kind: "reads" }) })).toEqual([ALL_RECEIVED]);
});

test("a call that got the ad of another stream's turn is judged by its own stream's plan", () => {
  const further = makeCall({ plan: planOf(true), step: 1, text: "" });
  expect(brokenBy({ ...posted(50), calls: [makeCall(), further] })).not.toContain(ALL_RECEIVED);
});
