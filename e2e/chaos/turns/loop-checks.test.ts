import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { checkTurns } from "./checks.ts";
import {
  BEGUN_AT_MS,
  type EvidenceChange,
  entryIn,
  makeCall,
  makeEvidence,
  planOf,
  spanAt,
  TEXT,
} from "./checks-fixture.ts";
import type { CallRecord } from "./stream-call.ts";

const plan = planOf(true);
const first = makeCall({ plan, callIds: ["search:0"], end: "whole" });

/** The step that answers the first one's tool call, through the other proxy. */
function makeNext(change: Partial<CallRecord> = {}): CallRecord {
  const text = "the second step's text";
  return makeCall({
    plan,
    step: 1,
    proxy: "proxy-2",
    answers: first,
    startedAtMs: BEGUN_AT_MS + 5100,
    headersAtMs: BEGUN_AT_MS + 5200,
    modelText: `${text}, and more`,
    text,
    arrivals: [{ atMs: BEGUN_AT_MS + 6000, chars: text.length }],
    end: "whole",
    endedAtMs: BEGUN_AT_MS + 6000,
    ...change,
  });
}

const brokenBy = (next: CallRecord | readonly CallRecord[], change: EvidenceChange = {}) =>
  checkTurns(makeEvidence({ plan, calls: [first, next].flat(), ...change })).flatMap(({ name, broken }) =>
    broken.length > 0 ? [name] : [],
  );

const IN_ORDER = "an acknowledged text is of its steps, in their order";
const FINDS_TURN = "a next step finds its turn while that is open";
const NO_OTHER_AD = "a next step has no other ad than its turn's";

const WITHOUT_AD = {
  ad: "skipped; reason=unknown_step",
  adResponseId: undefined,
  promptHash: hash("sha256", plan.userText),
};
const withoutAd = (change: Partial<CallRecord> = {}) => makeNext({ ...WITHOUT_AD, ...change });
/** What is acknowledged if the next step's text isn't the turn's. */
const onlyFirst = { turn: { postedTexts: [first.text] } };

test("a loop that went well breaks no check", () => {
  expect(brokenBy(makeNext())).toEqual([]);
});

test("steps in another order, joined otherwise, twice or missing are found", () => {
  const next = makeNext();
  const acknowledgedAs = (...texts: string[]) =>
    brokenBy(next, { turn: { postedTexts: [texts.join("\n\n")] } });
  expect(acknowledgedAs(first.text, next.text)).toEqual([]);
  expect(acknowledgedAs(next.text, first.text)).toEqual([IN_ORDER]);
  expect(acknowledgedAs(first.text + next.text)).toEqual([IN_ORDER]);
  expect(acknowledgedAs(first.text, next.text, next.text)).toEqual([IN_ORDER]);
  expect(acknowledgedAs(first.text, "", next.text)).toEqual([IN_ORDER]);
  expect(acknowledgedAs(first.text)).toEqual(["all that a caller received is acknowledged"]);
  expect(acknowledgedAs(first.text, next.text.slice(0, -1))).toEqual([
    "all that a caller received is acknowledged",
  ]);
});

test("a turn of short steps is as long as all of them together", () => {
  const short = { ...first, arrivals: first.arrivals.slice(0, 1) };
  const turn = { entry: entryIn("queued"), posts: 0, postedTexts: [] };
  expect(
    brokenBy(makeNext({ answers: short }), { calls: [short, makeNext({ answers: short })], turn }),
  ).toContain("a turn that outlives ACK_DEADLINE_MS is delivered");
});

test("two steps that began at the same time may stand in either order", () => {
  const next = makeNext({ startedAtMs: BEGUN_AT_MS + 50 });
  expect(brokenBy(next, { turn: { postedTexts: [`${next.text}\n\n${first.text}`] } })).toEqual([]);
});

test("the text of a step without the ad isn't the turn's", () => {
  const ended = { ad: "skipped; reason=turn_ended" };
  expect(brokenBy(withoutAd(ended))).toContain(IN_ORDER);
});

test("the death of one step's proxy excuses no other step", () => {
  const next = makeNext();
  const spans = [spanAt({ kind: "kill", app: "proxy-2" }, 5900, 500)];
  const [short, few] = [first.text.slice(0, -1), TEXT.slice(0, 50)];
  expect(brokenBy(next, { spans, turn: { postedTexts: [few] } })).toEqual([]);
  expect(brokenBy(next, { spans, turn: { postedTexts: [short] } })).toEqual([
    "a proxy that died costs two batches at most",
  ]);
});

test("a next step without its turn's ad is found, unless something excuses it", () => {
  expect(brokenBy(withoutAd(), onlyFirst)).toEqual([FINDS_TURN]);
  const redisAway = spanAt({ kind: "redis_kill" }, 4000, 500);
  expect(brokenBy(withoutAd(), { ...onlyFirst, spans: [redisAway] })).toEqual([]);
  const redisAwayBefore = spanAt({ kind: "redis_kill" }, -4000, 500);
  expect(brokenBy(withoutAd(), { ...onlyFirst, spans: [redisAwayBefore] })).toEqual([FINDS_TURN]);
  const killed = spanAt({ kind: "kill", app: "proxy-1" }, 5050, 500);
  expect(brokenBy(withoutAd(), { ...onlyFirst, spans: [killed] })).toEqual([FINDS_TURN]);
  const late = { startedAtMs: BEGUN_AT_MS + 7300, headersAtMs: BEGUN_AT_MS + 7400 };
  expect(brokenBy(withoutAd(late), onlyFirst)).toEqual([]);
});

test("a proxy that has lost Redis by its own word excuses what it says of the store, and nothing else", () => {
  const brokenOf = (ad: string, app: string, atMs: number) => {
    const evidence = makeEvidence({ plan, calls: [first, withoutAd({ ad })], ...onlyFirst });
    const redisAway = [{ app, atMs: BEGUN_AT_MS + atMs }];
    return checkTurns({ ...evidence, redisAway }).some(({ broken }) => broken.length > 0);
  };
  expect(brokenOf("fallback; reason=store_unavailable", "proxy-2", 5150)).toBe(false);
  expect(brokenOf("fallback; reason=store_unavailable", "proxy-1", 5150)).toBe(true);
  expect(brokenOf("fallback; reason=store_unavailable", "proxy-2", -100)).toBe(true);
  expect(brokenOf("skipped; reason=unknown_step", "proxy-2", 5150)).toBe(true);
});

test("a turn that another of its steps has ended excuses a step without ad", () => {
  const final = makeNext({ headersAtMs: BEGUN_AT_MS + 5110, endedAtMs: BEGUN_AT_MS + 5150 });
  const turn = { postedTexts: [`${first.text}\n\n${final.text}`] };
  const late = { attempt: 1, startedAtMs: BEGUN_AT_MS + 5160 };
  expect(brokenBy([final, withoutAd(late)], { turn })).toEqual([]);
  const waits = { ...final, status: 503, text: "", arrivals: [], modelText: "" };
  expect(brokenBy([waits, withoutAd(late)], onlyFirst)).toEqual([FINDS_TURN]);
});

test("a new ad for a next step is found, also if its caller wasn't told", () => {
  const evidence = makeEvidence({ plan, calls: [first, makeNext()] });
  const [ad] = evidence.sold.values();
  const sold = new Map([...evidence.sold, ["other", ad ?? expect.fail("no ad")] as const]);
  const broken = checkTurns({ ...evidence, sold }).filter((check) => check.broken.length > 0);
  expect(broken.map(({ name }) => name)).toEqual(["no next step asks for an ad"]);
});

test("a step without ad, between two that have it, breaks no check", () => {
  const between = withoutAd({ ad: "fallback; reason=store_unavailable", callIds: ["search:0"] });
  const spans = [spanAt({ kind: "redis_freeze" }, 5000, 500)];
  const last = makeNext({ step: 2, answers: between, modelText: "last", text: "last", arrivals: [] });
  const turn = { postedTexts: [`${first.text}\n\nlast`] };
  expect(brokenBy([between, last], { spans, turn })).toEqual([]);
  const other = { ...last, adResponseId: "other" };
  expect(brokenBy([between, other], { spans, turn })).toContain(NO_OTHER_AD);
});

test("an ad of another turn is found, also if that has the same text and the same ids", () => {
  const other = { ...makeEvidence({ plan, calls: [first, makeNext({ adResponseId: "other" })] }) };
  const [ad] = other.sold.values();
  const sold = new Map([...other.sold, ["other", ad ?? expect.fail("no ad")] as const]);
  const brokenOf = (evidence: typeof other) =>
    checkTurns(evidence).flatMap(({ name, broken }) => (broken.length > 0 ? [name] : []));
  expect(brokenOf({ ...other, sold })).toContain(NO_OTHER_AD);
  const before = {
    plan: { ...plan, number: 99 },
    calls: [makeCall({ adResponseId: "other" })],
    acknowledgments: [],
  };
  const followed = other.streams.map((stream) => ({ ...stream, plan: { ...plan, follows: 99 } }));
  const withBefore = { ...other, sold, streams: [before, ...followed] };
  expect(brokenOf(withBefore)).toContain(NO_OTHER_AD);
  const away = [spanAt({ kind: "redis_kill" }, 4000, 500)];
  expect(brokenOf({ ...withBefore, spans: away })).not.toContain(NO_OTHER_AD);
});
