import { eventually } from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { makeSpendReport } from "../src/money/spend-report.ts";
import { adKey, COUNTS_KEY, responseKey, shownKey } from "../src/store/keys.ts";
import { OTHER_PUBLISHER, offerOf, openTestStore, PUBLISHER } from "./test-store.ts";

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  store = await openTestStore();
});
beforeEach(() => store.clear());
afterAll(() => store.dispose());

const times = <T>(count: number, act: (n: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, n) => act(n)));
const adsOf = (served: readonly { ad: string | undefined }[]) => served.map(({ ad }) => ad);
const countOf = (ads: readonly (string | undefined)[], wanted: string | undefined) =>
  ads.filter((ad) => ad === wanted).length;
/** An acknowledgment window that has passed when the next sweep runs. */
const NO_WINDOW_MS = 0;

test("a budget for ten pays exactly ten of 200 concurrent injections", async () => {
  const served = await times(200, (n) => store.serve({ session: `s${n}` }));
  expect(countOf(adsOf(served), "drift")).toBe(10);
  expect(await store.fundsOf()).toEqual({ spent: 0, reserved: 1000 });
  expect(await store.totals()).toMatchObject({ requests: 200, injected: 10, no_fill: 190, pending: 10 });
});

test("what is left of a budget that the price doesn't divide stays unspent", async () => {
  const served = await times(20, () => store.serve({ offers: [offerOf({ budget: 1099 })] }));
  expect(countOf(adsOf(served), "drift")).toBe(10);
  expect((await store.fundsOf()).reserved).toBe(1000);
});

test("if the first offer has no budget, the next one is sold at its price", async () => {
  const offers = [offerOf({ budget: 200 }), offerOf({ ad: "tempo", price: 70, budget: 140 })];
  const served = await times(10, () => store.serve({ offers }));
  const ads = adsOf(served);
  expect([countOf(ads, "drift"), countOf(ads, "tempo"), countOf(ads, undefined)]).toEqual([2, 2, 6]);
  expect(await store.fundsOf("tempo")).toEqual({ spent: 0, reserved: 140 });
});

test("ok charges, no_ad_used releases, and the released money is sold again", async () => {
  const served = await times(10, () => store.serve());
  await times(10, async (n) => {
    const response = served[n];
    return response && store.acknowledge(response, n < 4 ? "ok" : "no_ad_used");
  });
  expect(await store.fundsOf()).toEqual({ spent: 400, reserved: 0 });
  const again = await times(20, () => store.serve());
  expect(countOf(adsOf(again), "drift")).toBe(6);
  expect(await store.fundsOf()).toEqual({ spent: 400, reserved: 600 });
});

test("a full Redis takes no new injection, and every acknowledgment", async () => {
  const served = await store.serve();
  const before = await store.redis.dbsize();
  await store.redis.config("SET", "maxmemory", "1");
  try {
    for (const decision of ["auction", "no_fill"] as const) {
      await expect(store.serve({ decision, session: "other" })).rejects.toThrow("OOM");
    }
    expect(await store.redis.dbsize()).toBe(before);
    expect(await store.acknowledge(served, "ok")).toBe("recorded");
    expect(await store.acknowledge(served, "ok")).toBe("already_acknowledged");
  } finally {
    await store.redis.config("SET", "maxmemory", "0");
  }
  expect(await store.fundsOf()).toEqual({ spent: 100, reserved: 0 });
});

test("releasing on a day that began twice leaves a daily sum of zero, not less", async () => {
  const response = await store.serve();
  // The state after a clock was set back over midnight and then set right again.
  await store.redis.hset(adKey("drift"), "today", 30);
  await store.acknowledge(response, "no_ad_used");
  expect(await store.redis.hget(adKey("drift"), "today")).toBe("0");
});

test("of many acknowledgments of one response exactly one charges", async () => {
  const response = await store.serve();
  const outcomes = await times(20, (n) => store.acknowledge(response, n % 2 === 0 ? "ok" : "no_ad_used"));
  expect(outcomes.filter((kind) => kind === "recorded")).toHaveLength(1);
  const { spent, reserved } = await store.fundsOf();
  const { ok, no_ad_used } = await store.totals();
  expect([spent, reserved, ok + no_ad_used]).toEqual([ok * 100, 0, 1]);
});

test("an acknowledgment by another publisher moves no money", async () => {
  const response = await store.serve();
  expect(await store.acknowledge({ ...response, publisher: OTHER_PUBLISHER }, "ok")).toBe("other_publisher");
  expect(await store.fundsOf()).toEqual({ spent: 0, reserved: 100 });
});

test("a reservation ends once after its window, however many processes sweep", async () => {
  const expiring = store.storeOf(NO_WINDOW_MS);
  await times(10, () => store.serve({}, expiring));
  const expired = await times(5, () => store.expire());
  expect(expired.reduce((sum, count) => sum + count, 0)).toBe(10);
  expect(await store.fundsOf()).toEqual({ spent: 0, reserved: 0 });
  expect(await store.totals()).toMatchObject({ injected: 10, expired: 10, pending: 0, reserved_micros: 0 });
});

test("a sweep ends at most one batch of reservations at a time", async () => {
  const expiring = store.storeOf(NO_WINDOW_MS);
  await times(7, () => store.serve({}, expiring));
  expect([await store.expire(3), await store.expire(3), await store.expire(3)]).toEqual([3, 3, 1]);
});

test("a sweep keeps a reservation within its window", async () => {
  await store.serve();
  expect(await store.expire()).toBe(0);
});

test("a reservation ends even if its response is forgotten", async () => {
  const { id } = await store.serve({}, store.storeOf(NO_WINDOW_MS));
  // This happens if no process runs for a month: the response's lifetime ends.
  await store.redis.del(responseKey(id));
  expect(await store.expire()).toBe(1);
  expect(await store.fundsOf()).toEqual({ spent: 0, reserved: 0 });
});

test("an ok after the window is charged if there is budget", async () => {
  const response = await store.serve({}, store.storeOf(NO_WINDOW_MS));
  await store.expire();
  expect(await store.acknowledge(response, "ok")).toBe("recorded");
  expect(await store.fundsOf()).toEqual({ spent: 100, reserved: 0 });
  expect(await store.totals()).toMatchObject({ ok: 1, expired: 0, unpaid: 0, spent_micros: 100 });
});

test("an ok after the window is unpaid if its budget is sold again", async () => {
  const late = await store.serve({}, store.storeOf(NO_WINDOW_MS));
  await store.expire();
  await times(10, () => store.serve());
  expect(await store.acknowledge(late, "ok")).toBe("recorded");
  expect(await store.fundsOf()).toEqual({ spent: 0, reserved: 1000 });
  expect(await store.totals()).toMatchObject({
    injected: 11,
    ok: 1,
    pending: 10,
    unpaid: 1,
    spent_micros: 0,
  });
});

test("an ok after the window is unpaid if the catalogue no longer has the ad", async () => {
  const late = await store.serve({}, store.storeOf(NO_WINDOW_MS));
  await store.expire();
  await store.acknowledge(late, "ok", 0);
  expect(await store.totals()).toMatchObject({ ok: 1, unpaid: 1, spent_micros: 0 });
});

test("an ok within the window is charged even if the budget was cut meanwhile", async () => {
  const response = await store.serve();
  await store.acknowledge(response, "ok", 0);
  expect(await store.fundsOf()).toEqual({ spent: 100, reserved: 0 });
});

test("a no_ad_used after the window releases nothing a second time", async () => {
  const late = await store.serve({}, store.storeOf(NO_WINDOW_MS));
  await store.expire();
  await store.acknowledge(late, "no_ad_used");
  expect(await store.fundsOf()).toEqual({ spent: 0, reserved: 0 });
  expect(await store.totals()).toMatchObject({ injected: 1, no_ad_used: 1, expired: 0, pending: 0 });
});

test("a changed budget counts from the next injection on", async () => {
  await times(20, () => store.serve());
  const more = await times(20, () => store.serve({ offers: [offerOf({ budget: 1500 })] }));
  expect(countOf(adsOf(more), "drift")).toBe(5);
  const less = await times(5, () => store.serve({ offers: [offerOf({ budget: 300 })] }));
  expect(countOf(adsOf(less), "drift")).toBe(0);
});

const capped = (windowMs: number) => [
  offerOf({ budget: 100_000, cap: { per_session: 3, window_ms: windowMs } }),
];

test("a session gets no more than its cap, however many requests are concurrent", async () => {
  const served = await times(60, (n) =>
    store.serve({ offers: capped(60_000), session: n % 2 === 0 ? "one" : "other" }),
  );
  expect(countOf(adsOf(served), "drift")).toBe(6);
});

test("an impression that wasn't used no longer counts towards the cap", async () => {
  const offers = capped(60_000);
  const served = await times(3, () => store.serve({ offers }));
  expect((await store.serve({ offers })).ad).toBeUndefined();
  await times(3, async (n) => {
    const response = served[n];
    return response && store.acknowledge(response, n === 0 ? "no_ad_used" : "ok");
  });
  const again = await times(5, () => store.serve({ offers }));
  expect(countOf(adsOf(again), "drift")).toBe(1);
});

test("an impression that expired no longer counts towards the cap", async () => {
  const offers = capped(60_000);
  await times(3, () => store.serve({ offers }, store.storeOf(NO_WINDOW_MS)));
  expect((await store.serve({ offers })).ad).toBeUndefined();
  await store.expire();
  expect((await store.serve({ offers })).ad).toBe("drift");
});

test("impressions older than the cap's window don't count", async () => {
  const offers = capped(1000);
  await times(3, () => store.serve({ offers }));
  expect((await store.serve({ offers })).ad).toBeUndefined();
  await eventually(async () => expect((await store.serve({ offers })).ad).toBe("drift"));
});

test("the keys of a cap are gone after its window", async () => {
  await times(3, () => store.serve({ offers: capped(1000) }));
  const caps = () => store.redis.keys("{adserver}:cap:*");
  expect(await caps()).toHaveLength(1);
  await eventually(async () => expect(await caps()).toEqual([]));
});

const REPEAT_AFTER_MS = 1_800_000;
const three = [
  offerOf({ budget: 100_000 }),
  offerOf({ ad: "tempo", price: 70, budget: 70_000 }),
  offerOf({ ad: "glide", price: 40, budget: 40_000 }),
];
/** Makes the session see an ad some time ago. */
const showAgo = (ad: string, agoMs: number) => store.redis.zadd(shownKey("s"), Date.now() - agoMs, ad);

test("what a session was just shown comes after the other offers, each at its own price", async () => {
  const served = [];
  for (let n = 0; n < three.length; n += 1) {
    served.push(await store.serve({ offers: three }));
  }
  expect(adsOf(served)).toEqual(["drift", "tempo", "glide"]);
  const reserved = await Promise.all(["drift", "tempo", "glide"].map((ad) => store.fundsOf(ad)));
  expect(reserved.map((funds) => funds.reserved)).toEqual([100, 70, 40]);
});

test("concurrent requests of one session get different ads", async () => {
  const served = await times(3, () => store.serve({ offers: three }));
  expect(adsOf(served).toSorted()).toEqual(["drift", "glide", "tempo"]);
});

test("if a session was just shown all offers, the one shown longest ago is shown again", async () => {
  await showAgo("drift", 60_000);
  await showAgo("tempo", 120_000);
  await showAgo("glide", 30_000);
  expect((await store.serve({ offers: three })).ad).toBe("tempo");
  expect((await store.serve({ offers: three })).ad).toBe("drift");
});

test("what was just shown is shown again if no other offer can be sold", async () => {
  await showAgo("drift", 1000);
  const offers = [offerOf(), offerOf({ ad: "tempo", budget: 99 })];
  expect((await store.serve({ offers })).ad).toBe("drift");
  expect((await store.serve()).ad).toBe("drift");
});

test("an ad steps back whether its impression was used, not used or never acknowledged", async () => {
  for (const verdict of ["ok", "no_ad_used", undefined] as const) {
    const session = `session-${verdict}`;
    const response = await store.serve({ offers: three, session });
    await (verdict && store.acknowledge(response, verdict));
    expect((await store.serve({ offers: three, session })).ad).toBe("tempo");
  }
});

test("what one session was shown doesn't step back for another", async () => {
  await store.serve({ offers: three, session: "one" });
  expect((await store.serve({ offers: three, session: "other" })).ad).toBe("drift");
});

test("half an hour after it was shown an ad steps back no longer", async () => {
  await showAgo("drift", REPEAT_AFTER_MS - 60_000);
  expect((await store.serve({ offers: three })).ad).toBe("tempo");
  await showAgo("drift", REPEAT_AFTER_MS);
  expect((await store.serve({ offers: three })).ad).toBe("drift");
});

test("what a session was shown is forgotten after half an hour", async () => {
  await showAgo("long-ago", REPEAT_AFTER_MS + 1);
  await store.serve({ offers: three });
  expect(await store.redis.zrange(shownKey("s"), "0", "-1")).toEqual(["drift"]);
  const leftMs = await store.redis.pttl(shownKey("s"));
  expect(leftMs).toBeGreaterThan(REPEAT_AFTER_MS - 60_000);
  expect(leftMs).toBeLessThanOrEqual(REPEAT_AFTER_MS);
});

test("if no offer can be sold, the obstacle to the best offer counts, though it stepped back", async () => {
  await showAgo("drift", 1000);
  const pace = { days: 3650, head_start: 0 };
  await store.serve({ offers: [offerOf({ budget: 99 }), offerOf({ ad: "tempo", pace })] });
  expect(await store.redis.hgetall(COUNTS_KEY)).toMatchObject({
    "auctions:no_budget": "1",
    "passed_over:no_budget": "1",
    "passed_over:paced": "1",
  });
});

const DAY_MS = 86_400_000;

test("pacing holds back a small daily budget after the head start", async () => {
  const pace = { days: 3650, head_start: 500 };
  const served = await times(20, () => store.serve({ offers: [offerOf({ budget: 2000, pace })] }));
  expect(countOf(adsOf(served), "drift")).toBe(5);
});

/** The part of a day's budget that pacing allows by now: the part of the day that has passed, and an hour. */
const openShare = (nowMs: number) => Math.min(1, ((nowMs % DAY_MS) + 3_600_000) / DAY_MS);

test("without an end, pacing sells an equal share of the budget evenly through each day", async () => {
  const offers = [offerOf({ price: 10, budget: 4800, pace: { days: 2, head_start: 0 } })];
  const beforeMs = Date.now();
  const served = await times(260, () => store.serve({ offers }));
  const sold = countOf(adsOf(served), "drift");
  const afterMs = Date.now();
  const isOneDay = Math.floor(beforeMs / DAY_MS) === Math.floor(afterMs / DAY_MS);
  expect(sold).toBeGreaterThanOrEqual(isOneDay ? Math.floor(240 * openShare(beforeMs)) : 0);
  expect(sold).toBeLessThanOrEqual(240 * openShare(isOneDay ? afterMs : beforeMs));
});

test("at the beginning of a flight, pacing allows an hour's share of the budget", async () => {
  const nowMs = Date.now();
  const pace = { days: 30, head_start: 0, from_ms: nowMs, until_ms: nowMs + 10 * 3_600_000 };
  const served = await times(60, () => store.serve({ offers: [offerOf({ budget: 10_000, pace })] }));
  // A tenth of 100 impressions. If midnight comes in between, the pacing of the flight begins again.
  expect(countOf(adsOf(served), "drift")).toBeGreaterThanOrEqual(10);
  expect(countOf(adsOf(served), "drift")).toBeLessThanOrEqual(21);
});

test("pacing holds nothing back in the last hour of a flight", async () => {
  const nowMs = Date.now();
  const pace = { days: 30, head_start: 0, from_ms: nowMs - 30 * DAY_MS, until_ms: nowMs + 60_000 };
  const served = await times(20, () => store.serve({ offers: [offerOf({ pace })] }));
  expect(countOf(adsOf(served), "drift")).toBe(10);
});

test("what was released can be sold again on the same day despite pacing", async () => {
  const offers = [offerOf({ budget: 2000, pace: { days: 3650, head_start: 500 } })];
  const served = await times(10, () => store.serve({ offers }));
  expect(countOf(adsOf(served), "drift")).toBe(5);
  await times(10, async (n) => {
    const response = served[n];
    return response?.ad && store.acknowledge(response, "no_ad_used");
  });
  const again = await times(10, () => store.serve({ offers }));
  expect(countOf(adsOf(again), "drift")).toBe(5);
});

test("every row of the report balances after a mix of all outcomes", async () => {
  const verdicts = ["ok", "no_ad_used", "none", "late"] as const;
  const groups = ["ad", "advertiser", "publisher", "day"] as const;
  const served = await times(300, async (n) => {
    const verdict = verdicts[n % 4] ?? "none";
    const response = await store.serve(
      {
        offers: [
          offerOf({ price: 97, budget: 4000 }),
          offerOf({ ad: "tempo", advertiser: "stridewell", price: 31, budget: 2000 }),
        ],
        publisher: n % 3 === 0 ? PUBLISHER : OTHER_PUBLISHER,
        decision: n % 11 === 0 ? "rejected" : n % 13 === 0 ? "no_fill" : "auction",
      },
      store.storeOf(verdict === "late" || n % 8 === 2 ? NO_WINDOW_MS : 60_000),
    );
    return { response, verdict };
  });
  const acknowledge = (wanted: string, verdict: "ok" | "no_ad_used") =>
    Promise.all(
      served.map(({ response, verdict: planned }) =>
        planned === wanted && response.ad ? store.acknowledge(response, verdict, 4000) : undefined,
      ),
    );
  await acknowledge("ok", "ok");
  await acknowledge("no_ad_used", "no_ad_used");
  await store.expire(1000);
  await acknowledge("late", "ok");

  const entries = await store.entries();
  const funds = await Promise.all((await store.allAds()).map((ad) => store.fundsOf(ad)));
  const counts = await store.redis.hgetall(COUNTS_KEY);
  for (const group of groups) {
    const { rows, totals } = makeSpendReport(entries, group);
    for (const row of [...rows, totals]) {
      expect(row.requests).toBe(row.injected + row.rejected + row.no_fill);
      expect(row.injected).toBe(row.ok + row.no_ad_used + row.expired + row.pending);
      expect(Object.values(row).every((value) => typeof value !== "number" || value >= 0)).toBe(true);
    }
    const sum = (of: "spent_micros" | "reserved_micros") => rows.reduce((all, row) => all + row[of], 0);
    expect(sum("spent_micros")).toBe(funds.reduce((all, { spent }) => all + spent, 0));
    expect(sum("reserved_micros")).toBe(funds.reduce((all, { reserved }) => all + reserved, 0));
    expect([totals.spent_micros, totals.reserved_micros]).toEqual([
      Number(counts["spend_micros"]),
      Number(counts["reserved_micros"]),
    ]);
    expect(totals.requests).toBe(300);
  }
});

test("auctions are counted by their outcome", async () => {
  const pace = { days: 3650, head_start: 0 };
  await store.serve();
  await store.serve({ offers: [offerOf({ budget: 99 }), offerOf({ ad: "tempo", pace })] });
  await store.serve({ offers: [offerOf({ ad: "tempo", pace })] });
  await store.serve({
    offers: capped(60_000).map((offer) => ({ ...offer, cap: { per_session: 0, window_ms: 1 } })),
  });
  await store.serve({ decision: "no_fill" });
  expect(await store.redis.hgetall(COUNTS_KEY)).toMatchObject({
    "auctions:won": "1",
    "auctions:no_budget": "1",
    "auctions:paced": "1",
    "auctions:capped": "1",
    "passed_over:no_budget": "1",
    "passed_over:paced": "2",
    "passed_over:capped": "1",
  });
});
