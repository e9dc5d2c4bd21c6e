import { eventually } from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { makeSpendReport } from "../src/money/spend-report.ts";
import { adKey, COUNTS_KEY, responseKey } from "../src/store/keys.ts";
import { OTHER_PUBLISHER, offerOf, openBooks, PUBLISHER } from "./books-on-redis.ts";

let books: Awaited<ReturnType<typeof openBooks>>;
beforeAll(async () => {
  books = await openBooks();
});
beforeEach(() => books.clear());
afterAll(() => books.dispose());

const times = <T>(count: number, act: (n: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, n) => act(n)));
const adsOf = (served: readonly { ad: string | undefined }[]) => served.map(({ ad }) => ad);
const countOf = (ads: readonly (string | undefined)[], wanted: string | undefined) =>
  ads.filter((ad) => ad === wanted).length;
/** Reservations end as soon as a sweep looks. */
const AT_ONCE_MS = 0;

test("of 200 injections at once a budget of ten pays exactly ten", async () => {
  const served = await times(200, (n) => books.serve({ session: `s${n}` }));
  expect(countOf(adsOf(served), "drift")).toBe(10);
  expect(await books.fundsOf()).toEqual({ spent: 0, reserved: 1000 });
  expect(await books.totals()).toMatchObject({ requests: 200, injected: 10, no_fill: 190, pending: 10 });
});

test("a budget that the price doesn't divide keeps what is left over", async () => {
  const served = await times(20, () => books.serve({ offers: [offerOf({ budget: 1099 })] }));
  expect(countOf(adsOf(served), "drift")).toBe(10);
  expect((await books.fundsOf()).reserved).toBe(1000);
});

test("the next offer is taken, at its own price, when the first has no budget", async () => {
  const offers = [offerOf({ budget: 200 }), offerOf({ ad: "tempo", price: 70, budget: 140 })];
  const served = await times(10, () => books.serve({ offers }));
  const ads = adsOf(served);
  expect([countOf(ads, "drift"), countOf(ads, "tempo"), countOf(ads, undefined)]).toEqual([2, 2, 6]);
  expect(await books.fundsOf("tempo")).toEqual({ spent: 0, reserved: 140 });
});

test("ok charges, no_ad_used releases, and what was released is sold again", async () => {
  const served = await times(10, () => books.serve());
  await times(10, async (n) => {
    const response = served[n];
    return response && books.acknowledge(response, n < 4 ? "ok" : "no_ad_used");
  });
  expect(await books.fundsOf()).toEqual({ spent: 400, reserved: 0 });
  const again = await times(20, () => books.serve());
  expect(countOf(adsOf(again), "drift")).toBe(6);
  expect(await books.fundsOf()).toEqual({ spent: 400, reserved: 600 });
});

test("what is released of a day that began twice leaves no more than nothing", async () => {
  const response = await books.serve();
  // As a clock leaves it that was set back over midnight, and then right again.
  await books.redis.hset(adKey("drift"), "today", 30);
  await books.acknowledge(response, "no_ad_used");
  expect(await books.redis.hget(adKey("drift"), "today")).toBe("0");
});

test("of many acknowledgments of one response exactly one charges", async () => {
  const response = await books.serve();
  const outcomes = await times(20, (n) => books.acknowledge(response, n % 2 === 0 ? "ok" : "no_ad_used"));
  expect(outcomes.filter((kind) => kind === "recorded")).toHaveLength(1);
  const { spent, reserved } = await books.fundsOf();
  const { ok, no_ad_used } = await books.totals();
  expect([spent, reserved, ok + no_ad_used]).toEqual([ok * 100, 0, 1]);
});

test("another publisher's acknowledgment moves no money", async () => {
  const response = await books.serve();
  expect(await books.acknowledge({ ...response, publisher: OTHER_PUBLISHER }, "ok")).toBe("other_publisher");
  expect(await books.fundsOf()).toEqual({ spent: 0, reserved: 100 });
});

test("a reservation ends with its window, once, however many sweep", async () => {
  const store = books.storeOf(AT_ONCE_MS);
  await times(10, () => books.serve({}, store));
  const expired = await times(5, () => books.expire());
  expect(expired.reduce((sum, count) => sum + count, 0)).toBe(10);
  expect(await books.fundsOf()).toEqual({ spent: 0, reserved: 0 });
  expect(await books.totals()).toMatchObject({ injected: 10, expired: 10, pending: 0, reserved_micros: 0 });
});

test("a sweep takes no more at once than its batch", async () => {
  const store = books.storeOf(AT_ONCE_MS);
  await times(7, () => books.serve({}, store));
  expect([await books.expire(3), await books.expire(3), await books.expire(3)]).toEqual([3, 3, 1]);
});

test("a reservation within its window is left alone", async () => {
  await books.serve();
  expect(await books.expire()).toBe(0);
});

test("a reservation ends although its response is forgotten", async () => {
  const { id } = await books.serve({}, books.storeOf(AT_ONCE_MS));
  // As its lifetime would have done it, had no process been up for a month.
  await books.redis.del(responseKey(id));
  expect(await books.expire()).toBe(1);
  expect(await books.fundsOf()).toEqual({ spent: 0, reserved: 0 });
});

test("an ok after the window is charged while there is budget", async () => {
  const response = await books.serve({}, books.storeOf(AT_ONCE_MS));
  await books.expire();
  expect(await books.acknowledge(response, "ok")).toBe("recorded");
  expect(await books.fundsOf()).toEqual({ spent: 100, reserved: 0 });
  expect(await books.totals()).toMatchObject({ ok: 1, expired: 0, unpaid: 0, spent_micros: 100 });
});

test("an ok after the window is unpaid when its budget is sold again", async () => {
  const late = await books.serve({}, books.storeOf(AT_ONCE_MS));
  await books.expire();
  await times(10, () => books.serve());
  expect(await books.acknowledge(late, "ok")).toBe("recorded");
  expect(await books.fundsOf()).toEqual({ spent: 0, reserved: 1000 });
  expect(await books.totals()).toMatchObject({
    injected: 11,
    ok: 1,
    pending: 10,
    unpaid: 1,
    spent_micros: 0,
  });
});

test("an ok after the window is unpaid when the ad isn't sold any more", async () => {
  const late = await books.serve({}, books.storeOf(AT_ONCE_MS));
  await books.expire();
  await books.acknowledge(late, "ok", 0);
  expect(await books.totals()).toMatchObject({ ok: 1, unpaid: 1, spent_micros: 0 });
});

test("an ok within the window is charged although the budget was cut since", async () => {
  const response = await books.serve();
  await books.acknowledge(response, "ok", 0);
  expect(await books.fundsOf()).toEqual({ spent: 100, reserved: 0 });
});

test("a no_ad_used after the window releases nothing a second time", async () => {
  const late = await books.serve({}, books.storeOf(AT_ONCE_MS));
  await books.expire();
  await books.acknowledge(late, "no_ad_used");
  expect(await books.fundsOf()).toEqual({ spent: 0, reserved: 0 });
  expect(await books.totals()).toMatchObject({ injected: 1, no_ad_used: 1, expired: 0, pending: 0 });
});

test("another budget in the catalogue counts from the next injection on", async () => {
  await times(20, () => books.serve());
  const more = await times(20, () => books.serve({ offers: [offerOf({ budget: 1500 })] }));
  expect(countOf(adsOf(more), "drift")).toBe(5);
  const less = await times(5, () => books.serve({ offers: [offerOf({ budget: 300 })] }));
  expect(countOf(adsOf(less), "drift")).toBe(0);
});

const capped = (windowMs: number) => [
  offerOf({ budget: 100_000, cap: { per_session: 3, window_ms: windowMs } }),
];

test("a session gets no more than its cap, however many ask at once", async () => {
  const served = await times(60, (n) =>
    books.serve({ offers: capped(60_000), session: n % 2 === 0 ? "one" : "other" }),
  );
  expect(countOf(adsOf(served), "drift")).toBe(6);
});

test("an impression that wasn't used gives its place in the cap back", async () => {
  const offers = capped(60_000);
  const served = await times(3, () => books.serve({ offers }));
  expect((await books.serve({ offers })).ad).toBeUndefined();
  await times(3, async (n) => {
    const response = served[n];
    return response && books.acknowledge(response, n === 0 ? "no_ad_used" : "ok");
  });
  const again = await times(5, () => books.serve({ offers }));
  expect(countOf(adsOf(again), "drift")).toBe(1);
});

test("an impression that expired gives its place in the cap back", async () => {
  const offers = capped(60_000);
  await times(3, () => books.serve({ offers }, books.storeOf(AT_ONCE_MS)));
  expect((await books.serve({ offers })).ad).toBeUndefined();
  await books.expire();
  expect((await books.serve({ offers })).ad).toBe("drift");
});

test("a cap slides: what is older than its window doesn't count", async () => {
  const offers = capped(400);
  await times(3, () => books.serve({ offers }));
  expect((await books.serve({ offers })).ad).toBeUndefined();
  await eventually(async () => expect((await books.serve({ offers })).ad).toBe("drift"));
});

test("nothing of a cap is left after its window", async () => {
  await times(3, () => books.serve({ offers: capped(200) }));
  const caps = () => books.redis.keys("{adserver}:cap:*");
  expect(await caps()).toHaveLength(1);
  await eventually(async () => expect(await caps()).toEqual([]));
});

const DAY_MS = 86_400_000;

test("pacing holds a small daily budget back after its head start", async () => {
  const pace = { days: 3650, head_start: 500 };
  const served = await times(20, () => books.serve({ offers: [offerOf({ budget: 2000, pace })] }));
  expect(countOf(adsOf(served), "drift")).toBe(5);
});

/** How much of a day's plan is open at a moment: the part of the day that has gone, and an hour. */
const openShare = (nowMs: number) => Math.min(1, ((nowMs % DAY_MS) + 3_600_000) / DAY_MS);

test("without an end pacing opens an equal share of the budget as the day goes", async () => {
  const offers = [offerOf({ price: 10, budget: 4800, pace: { days: 2, head_start: 0 } })];
  const beforeMs = Date.now();
  const served = await times(260, () => books.serve({ offers }));
  const sold = countOf(adsOf(served), "drift");
  const afterMs = Date.now();
  const isOneDay = Math.floor(beforeMs / DAY_MS) === Math.floor(afterMs / DAY_MS);
  expect(sold).toBeGreaterThanOrEqual(isOneDay ? Math.floor(240 * openShare(beforeMs)) : 0);
  expect(sold).toBeLessThanOrEqual(240 * openShare(isOneDay ? afterMs : beforeMs));
});

test("pacing lets an hour of a flight's budget be sold at its very beginning", async () => {
  const nowMs = Date.now();
  const pace = { days: 30, head_start: 0, from_ms: nowMs, until_ms: nowMs + 10 * 3_600_000 };
  const served = await times(60, () => books.serve({ offers: [offerOf({ budget: 10_000, pace })] }));
  // A tenth of 100 impressions; the day may end in between, and the flight's plan begins anew then.
  expect(countOf(adsOf(served), "drift")).toBeGreaterThanOrEqual(10);
  expect(countOf(adsOf(served), "drift")).toBeLessThanOrEqual(21);
});

test("pacing holds nothing back in the last hour of a flight", async () => {
  const nowMs = Date.now();
  const pace = { days: 30, head_start: 0, from_ms: nowMs - 30 * DAY_MS, until_ms: nowMs + 60_000 };
  const served = await times(20, () => books.serve({ offers: [offerOf({ pace })] }));
  expect(countOf(adsOf(served), "drift")).toBe(10);
});

test("what was paced and released can be sold again the same day", async () => {
  const offers = [offerOf({ budget: 2000, pace: { days: 3650, head_start: 500 } })];
  const served = await times(10, () => books.serve({ offers }));
  expect(countOf(adsOf(served), "drift")).toBe(5);
  await times(10, async (n) => {
    const response = served[n];
    return response?.ad && books.acknowledge(response, "no_ad_used");
  });
  const again = await times(10, () => books.serve({ offers }));
  expect(countOf(adsOf(again), "drift")).toBe(5);
});

test("the report balances, row by row, whatever happens to whom", async () => {
  const verdicts = ["ok", "no_ad_used", "none", "late"] as const;
  const groups = ["ad", "advertiser", "publisher", "day"] as const;
  const served = await times(300, async (n) => {
    const verdict = verdicts[n % 4] ?? "none";
    const response = await books.serve(
      {
        offers: [
          offerOf({ price: 97, budget: 4000 }),
          offerOf({ ad: "tempo", advertiser: "stridewell", price: 31, budget: 2000 }),
        ],
        publisher: n % 3 === 0 ? PUBLISHER : OTHER_PUBLISHER,
        decision: n % 11 === 0 ? "rejected" : n % 13 === 0 ? "no_fill" : "auction",
      },
      books.storeOf(verdict === "late" || n % 8 === 2 ? AT_ONCE_MS : 60_000),
    );
    return { response, verdict };
  });
  const acknowledge = (wanted: string, verdict: "ok" | "no_ad_used") =>
    Promise.all(
      served.map(({ response, verdict: planned }) =>
        planned === wanted && response.ad ? books.acknowledge(response, verdict, 4000) : undefined,
      ),
    );
  await acknowledge("ok", "ok");
  await acknowledge("no_ad_used", "no_ad_used");
  await books.expire(1000);
  await acknowledge("late", "ok");

  const entries = await books.entries();
  const funds = await Promise.all((await books.allAds()).map((ad) => books.fundsOf(ad)));
  const counts = await books.redis.hgetall(COUNTS_KEY);
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

test("auctions are counted by what became of them", async () => {
  const pace = { days: 3650, head_start: 0 };
  await books.serve();
  await books.serve({ offers: [offerOf({ budget: 99 }), offerOf({ ad: "tempo", pace })] });
  await books.serve({ offers: [offerOf({ ad: "tempo", pace })] });
  await books.serve({
    offers: capped(60_000).map((offer) => ({ ...offer, cap: { per_session: 0, window_ms: 1 } })),
  });
  await books.serve({ decision: "no_fill" });
  expect(await books.redis.hgetall(COUNTS_KEY)).toMatchObject({
    "auctions:won": "1",
    "auctions:no_budget": "1",
    "auctions:paced": "1",
    "auctions:capped": "1",
    "passed_over:no_budget": "1",
    "passed_over:paced": "2",
    "passed_over:capped": "1",
  });
});
