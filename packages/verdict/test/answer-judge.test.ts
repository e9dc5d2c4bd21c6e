import { eventually } from "@adrelay/testkit";
import { expect, onTestFinished, test } from "vitest";
import { AnswerJudge, type AnswerJudgeOptions } from "../src/answer-judge.ts";
import { runTask } from "../src/judge-thread.ts";

const AD = { productName: "Velmora Drift", landingUrl: "https://velmora.example/drift" };
const NONE = { mention: "none", isLabelled: false };
const UNKNOWN = { mention: "unknown", isLabelled: false };
const NAMED = { mention: "name", isLabelled: true };
/** Rendering it takes far longer than 60 ms. */
const HOSTILE = "<style>.a{color:red}</style><p class=a style='color:red'>x".repeat(1100);

function openJudge(options: Partial<AnswerJudgeOptions> = {}) {
  const failures: unknown[] = [];
  const judge = new AnswerJudge({
    timeoutMs: 20_000,
    onFailed: (err) => failures.push(Object(err).name),
    ...options,
  });
  judge.start();
  onTestFinished(() => judge.stop());
  return { judge, failures };
}

test.each([
  ["Try the [Velmora Drift](https://velmora.example/drift) (Sponsored).", "link", true],
  ["Try the Velmora Drift (Sponsored).", "name", true],
  ["Try the Velmora Drift.", "name", false],
  ["Try the Drift from Velmora (ad).", "name", true],
  ["Ad: https://velmora.example/drift", "link", true],
  ["[Velmora Drift](https://other.example/) (ad)", "foreign", false],
  ["<p hidden>Velmora Drift (Sponsored)</p> Try some shoes.", "none", false],
  ["Sponsored: nothing of it.", "none", false],
  [" \n", "none", false],
])("in %j the mention is %s, and its label %s", async (text, mention, isLabelled) => {
  expect(await openJudge().judge.find(text, AD)).toEqual({ mention, isLabelled });
});

test("without its page, a link says nothing about the ad", async () => {
  const { judge } = openJudge();
  const text = "[Velmora Drift](https://velmora.example/drift) (ad)";
  expect(await judge.find(text, { ...AD, landingUrl: undefined })).toEqual(NAMED);
});

test("without an ad, only an empty text is known", async () => {
  const { judge } = openJudge();
  expect(await judge.find("Velmora Drift", undefined)).toEqual(UNKNOWN);
  expect(await judge.find("", undefined)).toEqual(NONE);
});

test("of a very long text only the beginning is searched", async () => {
  const { judge } = openJudge();
  const long = "word ".repeat(20_000);
  expect(await judge.find(`Velmora Drift (ad). ${long}`, AD)).toEqual(NAMED);
  expect(await judge.find(`${long} Velmora Drift (ad).`, AD)).toEqual(UNKNOWN);
});

test("a text waits for others until its time is over, or one comes that doesn't fit beside it", async () => {
  const { judge } = openJudge({ collectMs: 600_000 });
  const first = judge.find("Velmora Drift (ad)", AD);
  const long = judge.find("word ".repeat(20_000), AD);
  expect(await first).toEqual(NAMED);
  // By then the long one would have been searched, too.
  await openJudge().judge.find("Velmora Drift (ad)", AD);
  expect(await Promise.race([long, "waits"])).toBe("waits");
  await judge.stop();
  expect(await long).toEqual(UNKNOWN);
});

test("texts that come together go to the thread in one message", async () => {
  const { judge, failures } = openJudge({ timeoutMs: 1 });
  const found = await Promise.all([1, 2, 3].map(() => judge.find("Velmora Drift (ad)", AD)));
  expect(found).toEqual([UNKNOWN, UNKNOWN, UNKNOWN]);
  expect(failures).toEqual(["AbortError"]);
});

test("a text on which the rules fail takes nothing from the others of its message", () => {
  const broken = { text: "Velmora Drift (ad)", ad: JSON.parse("{}") };
  const found = runTask([broken, { text: "Velmora Drift (ad)", ad: AD }]);
  expect(found).toEqual([expect.any(Error), NAMED]);
});

test("a text that takes too long is given up, and the next one is searched", async () => {
  const { judge, failures } = openJudge({ timeoutMs: 60 });
  expect(await judge.find(HOSTILE, AD)).toEqual(UNKNOWN);
  expect(failures).toEqual(["AbortError"]);
  // A new thread needs longer than 60 ms to begin.
  await eventually(async () => expect(await judge.find("Velmora Drift (ad)", AD)).toEqual(NAMED));
});

test("what waits behind a text that is given up is searched by a new thread", async () => {
  const { judge } = openJudge({ timeoutMs: 3000 });
  await judge.find("Velmora Drift", AD);
  const hostile = Array.from({ length: 30 }, () => judge.find(HOSTILE, AD));
  await Promise.race(hostile);
  const later = judge.find("Velmora Drift (ad)", AD);
  const found = await Promise.all([...hostile, later]);
  expect(found.every(({ mention }) => ["none", "unknown", "name"].includes(mention))).toBe(true);
  expect(await judge.find("Velmora Drift (ad)", AD)).toEqual(NAMED);
});

test("texts for which there is no room are unknown at once", async () => {
  const { judge, failures } = openJudge({ queueMax: 2 });
  const found = await Promise.all(Array.from({ length: 10 }, () => judge.find("Velmora Drift (ad)", AD)));
  expect(found.filter(({ mention }) => mention === "unknown").length).toBe(failures.length);
  expect(failures.length).toBeGreaterThanOrEqual(5);
  expect(found[0]).toEqual(NAMED);
});

test("texts that can't mention the ad need no room, and no thread", async () => {
  const { judge, failures } = openJudge({ queueMax: 0, timeoutMs: 1 });
  const found = await Promise.all(Array.from({ length: 1000 }, () => judge.find("A good shoe is soft.", AD)));
  expect(found).toEqual(Array.from({ length: 1000 }, () => NONE));
  expect(failures).toEqual([]);
});

test("texts for which there is no room do no harm once their time is over", async () => {
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown) => unhandled.push(reason);
  process.on("unhandledRejection", onUnhandled);
  onTestFinished(() => void process.off("unhandledRejection", onUnhandled));
  const { judge } = openJudge({ queueMax: 2, timeoutMs: 1 });
  const found = await Promise.all(Array.from({ length: 10 }, () => judge.find("Velmora Drift (ad)", AD)));
  expect(found).toEqual(Array.from({ length: 10 }, () => UNKNOWN));
  // Rejections are told as unhandled in a later turn of the event loop. The search by another thread takes many.
  await openJudge().judge.find("Velmora Drift (ad)", AD);
  expect(unhandled).toEqual([]);
});

test("the process goes on while a text is searched", async () => {
  const { judge } = openJudge();
  await judge.find("Velmora Drift", AD);
  const searching = judge.find(HOSTILE, AD);
  let turns = 0;
  const counting = setInterval(() => {
    turns += 1;
  }, 1);
  await searching;
  clearInterval(counting);
  expect(turns).toBeGreaterThan(5);
});

test("a search ends with the signal of its asker, and isn't told as a failure", async () => {
  const { judge, failures } = openJudge();
  await judge.find("Velmora Drift", AD);
  const asker = new AbortController();
  const searching = judge.find(HOSTILE, AD, asker.signal);
  asker.abort();
  expect(await searching).toEqual(UNKNOWN);
  expect(failures).toEqual([]);
  expect(await judge.find("Velmora Drift (ad)", AD)).toEqual(NAMED);
});

test("after a stop every text is unknown, and nothing is told", async () => {
  const { judge, failures } = openJudge();
  await judge.find("Velmora Drift", AD);
  const searching = judge.find(HOSTILE, AD);
  await judge.stop();
  expect(await searching).toEqual(UNKNOWN);
  expect(await judge.find("Velmora Drift", AD)).toEqual(UNKNOWN);
  expect(failures).toEqual([]);
});
