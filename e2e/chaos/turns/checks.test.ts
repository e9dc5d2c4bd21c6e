import { expect, test } from "vitest";
import { checkTurns } from "./checks.ts";
import type { TurnEvidence, TurnsEvidence } from "./evidence.ts";
import type { TurnFault } from "./faults.ts";
import { planStreams } from "./streams.ts";

/** A turn that went well: a call through proxy-1 that received 50 characters in 5 s, all of them acknowledged. */
const [plan] = planStreams({ seed: 1, streams: 1, trafficMs: 1000 });
const BEGUN_AT_MS = 1_000_000;
const TEXT = Array.from({ length: 20 }, (_, at) => `word${at}`)
  .join(" ")
  .slice(0, 100);
const SIMPLE = { isRefused: false, acknowledges: "proxy" } as const;

function evidenceOf(change: Partial<TurnEvidence>, spans: TurnsEvidence["spans"] = []): TurnsEvidence {
  const stream = { ...(plan ?? expect.fail("no stream")), text: TEXT, ...SIMPLE };
  const arrivals = [1, 2, 3, 4, 5].map((at) => ({ atMs: BEGUN_AT_MS + at * 1000, chars: at * 10 }));
  const call = {
    proxy: "proxy-1",
    startedAtMs: BEGUN_AT_MS,
    status: 200,
    ad: "injected",
    adResponseId: "id",
    text: TEXT.slice(0, 50),
    arrivals,
    end: "broken",
  } as const;
  const turn: TurnEvidence = {
    id: "id",
    plan: stream,
    calls: [call],
    sent: [],
    postedTexts: [TEXT.slice(0, 50)],
    posts: 1,
    entry: entryIn("delivered"),
    ...change,
  };
  return { turns: [turn], streams: [{ plan: stream, calls: [call], acknowledgments: [] }], spans };
}

/** An entry that was accepted 30 s after the call had begun. */
function entryIn(state: string, isLate = false): TurnEvidence["entry"] {
  const entry: unknown = {
    state,
    acceptedAtMs: BEGUN_AT_MS + 30_000,
    isLate,
    endedAtMs: BEGUN_AT_MS + 30_000,
  };
  // The checks read nothing else of it.
  return entry as TurnEvidence["entry"];
}

const brokenOf = (evidence: TurnsEvidence) =>
  checkTurns(evidence).flatMap(({ name, broken }) => (broken.length > 0 ? [name] : []));

const spanAt = (fault: TurnFault, fromMs: number, lastsMs: number) => ({
  fault,
  fromMs: BEGUN_AT_MS + fromMs,
  untilMs: BEGUN_AT_MS + fromMs + lastsMs,
});
const kill = (fromMs: number) => spanAt({ kind: "kill", app: "proxy-1" }, fromMs, 500);
const posted = (chars: number) => ({ postedTexts: [TEXT.slice(0, chars)] });

const ALL_RECEIVED = "all that a caller received is acknowledged";
const TWO_BATCHES = "a proxy that died costs two batches at most";

test("a turn that went well breaks no check", () => {
  expect(brokenOf(evidenceOf({}))).toEqual([]);
});

test("an ad that was missed, acknowledged late or not delivered is found", () => {
  const missed = brokenOf(evidenceOf({ entry: entryIn("missed"), posts: 0, postedTexts: [] }));
  expect(missed).toContain("no ad is missed or late, however long its turn runs");
  expect(missed).toContain("a turn that outlives ACK_DEADLINE_MS is delivered");
  expect(brokenOf(evidenceOf({ entry: entryIn("delivered", true) }))).toEqual([
    "no ad is missed or late, however long its turn runs",
  ]);
  expect(brokenOf(evidenceOf({ entry: entryIn("dead") }))).toContain(
    "each ad that reached a caller is delivered",
  );
});

test("a character too few is found while the proxy lives", () => {
  expect(brokenOf(evidenceOf(posted(49)))).toEqual([ALL_RECEIVED]);
  expect(brokenOf(evidenceOf(posted(51)))).toEqual([]);
});

test("after a kill only the text of the last moments may be missing", () => {
  expect(brokenOf(evidenceOf(posted(40), [kill(5000)]))).toEqual([]);
  expect(brokenOf(evidenceOf(posted(39), [kill(5000)]))).toEqual([TWO_BATCHES]);
});

test("the kill of another proxy, or one before or after the turn, excuses nothing", () => {
  const ofOther = spanAt({ kind: "kill", app: "proxy-2" }, 4000, 500);
  for (const span of [ofOther, kill(-1000), kill(31_000)]) {
    expect(brokenOf(evidenceOf(posted(49), [span]))).toEqual([ALL_RECEIVED]);
  }
});

test("text that came while Redis was away may be missing if the proxy then dies", () => {
  const away = spanAt({ kind: "redis_freeze" }, 2500, 2000);
  expect(brokenOf(evidenceOf(posted(10), [kill(5000), away]))).toEqual([]);
  expect(
    brokenOf(evidenceOf(posted(10), [kill(5000), spanAt({ kind: "redis_freeze" }, 3500, 1000)])),
  ).toEqual([TWO_BATCHES]);
  expect(brokenOf(evidenceOf(posted(0), [away]))).toEqual([ALL_RECEIVED]);
});

test("a proxy that stood still for longer than a lease counts as dead, a shorter halt doesn't", () => {
  const freeze = (lastsMs: number) => spanAt({ kind: "freeze", app: "proxy-1" }, 5000, lastsMs);
  expect(brokenOf(evidenceOf(posted(40), [freeze(23_000)]))).toEqual([]);
  expect(brokenOf(evidenceOf(posted(30), [freeze(2000)]))).toEqual([ALL_RECEIVED]);
});

test("another text than the model's, and a second text, are found", () => {
  const other = `${TEXT.slice(0, 50)}!`;
  expect(brokenOf(evidenceOf({ postedTexts: [other] }))).toEqual([
    "an acknowledged text is a beginning of the model's",
  ]);
  expect(brokenOf(evidenceOf({ postedTexts: [TEXT.slice(0, 50), TEXT] }))).toEqual([
    "an ad has one text in all posts",
  ]);
});

test("a refusal that reaches the caller, and a 409 for a backend, are found", () => {
  const evidence = evidenceOf({});
  const [stream] = evidence.streams;
  const [call] = stream?.calls ?? [];
  const refused = { ...(stream ?? expect.fail("no stream")) };
  const broken = brokenOf({
    ...evidence,
    streams: [
      {
        plan: { ...refused.plan, isRefused: true },
        calls: [{ ...(call ?? expect.fail("no call")), status: 422, text: "" }],
        acknowledgments: [{ adResponseId: "id", text: "", statuses: [503, 409] }],
      },
    ],
  });
  expect(broken).toEqual(["no caller sees that an ad was refused", "no backend's acknowledgment is refused"]);
});
