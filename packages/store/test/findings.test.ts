/** What is found of ads in the texts of turns: kept, counted once, and compared with the provider's verdict. */
import { type AdResponseId, VERDICTS, type Verdict } from "@adrelay/contract";
import { FINDINGS, type Finding, isDisagreement, parseFinding, type TurnAd } from "@adrelay/core";
import { describe, expect, test } from "vitest";
import { acknowledgedOf, type LedgerSnapshot, NO_LIMITS, type Settlement } from "../src/index.ts";
import type { StoreOptions } from "../src/open-store.ts";
import { jobOf, newId, openTestRedis, publisher, settlementOf } from "./store-fixture.ts";
import { expectTurnBalance, openTestTurns, sumOf, turnCounts } from "./turns-fixture.ts";

const { redis } = await openTestRedis();
const AD: TurnAd = { productName: "Velmora Drift", landingUrl: "https://velmora.example/drift" };
const NAMED: Finding = { mention: "name", isLabelled: true };
const PAST_LEASE_MS = 30_000;

/** A store whose search is as simple as can be, and tells what it was asked. */
function setup(more: Partial<StoreOptions> = {}) {
  const asked: { text: string; ad: TurnAd | undefined }[] = [];
  const findAd = async (text: string, ad: TurnAd | undefined): Promise<Finding> => {
    asked.push({ text, ad });
    const isMentioned = ad !== undefined && text.includes(ad.productName);
    return isMentioned
      ? { mention: "name", isLabelled: text.includes("Sponsored") }
      : { mention: "none", isLabelled: false };
  };
  const fixture = openTestTurns(redis, { findAd, ...more });
  const openWith = async (ad: TurnAd | undefined = AD) => {
    const id = newId();
    await fixture.turns.open(fixture.newTurn(id, { kind: "journaled", ad }));
    return { id, publisher, step: 1 };
  };
  const findingOf = async (id: Parameters<typeof fixture.find>[0]) => {
    const entry = await fixture.find(id);
    return entry && acknowledgedOf(entry)?.finding;
  };
  return { ...fixture, asked, openWith, findingOf };
}

const answersOf = ({ totals }: LedgerSnapshot) =>
  Object.fromEntries((totals.get("answers") ?? []).map(({ label, value }) => [label, value]));

/** Answers are the turns that ended, without those that others ended. */
function expectAnswerBalance(snapshot: LedgerSnapshot): void {
  const { ended } = turnCounts(snapshot);
  const others = (ended["superseded"] ?? 0) + (ended["manual"] ?? 0);
  const all = Object.values(ended).reduce((sum, value) => sum + value, 0);
  expect(sumOf(snapshot.totals.get("answers"))).toBe(all - others);
  expectTurnBalance(snapshot);
}

describe("the finding of a turn", () => {
  test("is kept in the entry and counted once, however often it is settled", async () => {
    const { openWith, settle, findingOf, snapshot, asked } = setup();
    const step = await openWith();
    expect(await settle(step, "Velmora Drift (Sponsored)", { finding: NAMED })).toBe("queued");
    expect(await settle(step, "Velmora Drift (Sponsored)", { finding: NAMED })).toBe("ended");
    expect(await findingOf(step.id)).toEqual(NAMED);
    expect(answersOf(await snapshot())).toEqual({ "name,yes": 1 });
    expect(asked).toEqual([]);
    expectAnswerBalance(await snapshot());
  });

  test("is that of the whole text if there were several steps", async () => {
    const { openWith, hold, join, endStep, settle, findingOf, asked } = setup();
    const first = await openWith();
    await hold(first, "call 1");
    const second = await join("call 1");
    await endStep(first, { text: "Sponsored:" });
    await settle(second, "Velmora Drift", { finding: { mention: "none", isLabelled: false } });
    expect(asked).toEqual([{ text: "Sponsored:\n\nVelmora Drift", ad: AD }]);
    expect(await findingOf(first.id)).toEqual(NAMED);
  });

  test("is found by a worker in what the journal has of a proxy that is gone", async () => {
    const { openWith, write, age, turnsSwept, findingOf, snapshot, asked } = setup();
    const step = await openWith({ ...AD, landingUrl: undefined });
    await write(step, 1, "The Velmora Drift");
    await age(step.id, PAST_LEASE_MS);
    await turnsSwept();
    expect(asked).toEqual([{ text: "The Velmora Drift", ad: { ...AD, landingUrl: undefined } }]);
    expect(await findingOf(step.id)).toEqual({ mention: "name", isLabelled: false });
    expectAnswerBalance(await snapshot());
  });

  test("is unknown if nobody looked, and asked without an ad if its name isn't known", async () => {
    const { openWith, settle, age, turnsSwept, findingOf, asked, open } = setup();
    const step = await openWith();
    await settle(step, "Velmora Drift");
    expect(await findingOf(step.id)).toEqual({ mention: "unknown", isLabelled: false });
    const nameless = await open();
    await age(nameless.id, PAST_LEASE_MS);
    await turnsSwept();
    expect(asked).toEqual([{ text: "", ad: undefined }]);
  });

  test("counts for an abandoned turn, too, and not for one that its backend acknowledged", async () => {
    const { openWith, settle, acknowledgments, snapshot, findingOf } = setup({
      intakeRules: () => ({ acceptsUnknown: true, limits: NO_LIMITS, emptyAnswers: "abandon" }),
    });
    const empty = await openWith();
    expect(await settle(empty, "", { finding: { mention: "none", isLabelled: false } })).toBe("abandoned");
    const { id } = await openWith();
    const accepted = await acknowledgments.accept({ job: jobOf(id), textHash: "theirs" });
    expect(accepted).toMatchObject({ kind: "accepted" });
    expect(await findingOf(id)).toBeUndefined();
    expect(answersOf(await snapshot())).toEqual({ "none,no": 1 });
    expectAnswerBalance(await snapshot());
  });

  test("and what it was looked for by leave the journal with the turn", async () => {
    const { openWith, settle, turnKey, keysOf } = setup();
    const step = await openWith();
    expect(await redis.hmget(turnKey(step.id), "P", "U")).toEqual([AD.productName, AD.landingUrl]);
    await settle(step, "text", { finding: NAMED });
    expect(await keysOf(step.id)).toEqual([]);
  });
});

const CASES = FINDINGS.flatMap((finding) =>
  ([...VERDICTS, "unknown"] as const).map((verdict) => [finding, verdict] as const),
);

test.each(CASES)("%s and the verdict %s disagree as the rule of core says", async (written, verdict) => {
  const { openWith, settle, completer, snapshot } = setup();
  const step = await openWith();
  const finding = parseFinding(written) ?? expect.fail(written);
  await settle(step, "text", { finding });
  for (let repeats = 0; repeats < 2; repeats += 1) {
    await completer.settle(deliveryOf(step.id, verdict));
  }
  const counted = (await snapshot()).totals.get("disagreements") ?? [];
  expect(counted.map(({ label, value }) => ({ label, value }))).toEqual(
    isDisagreement(finding, verdict) ? [{ label: verdict, value: 1 }] : [],
  );
});

/** The booking of a delivery with this verdict. */
function deliveryOf(id: AdResponseId, verdict: Verdict | "unknown"): Settlement {
  const settlement = settlementOf(id, "deliver");
  return settlement.event === "deliver" ? { ...settlement, verdict } : settlement;
}

test("what no turn wrote is compared with no verdict", async () => {
  const { begin, completer, store, snapshot } = setup();
  const id = newId();
  await store.injections.record({ id, publisher, outcome: "ok", deadlineMs: 60_000 });
  await begin(id);
  await completer.settle(deliveryOf(id, "no_ad_used"));
  expect((await snapshot()).totals.get("disagreements") ?? []).toEqual([]);
});
