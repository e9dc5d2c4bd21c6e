import { eventually } from "@adrelay/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeRandom } from "../../../e2e/chaos/random.ts";
import { ADS_KEY, adKey } from "../src/store/keys.ts";
import { get } from "./ad-server.ts";
import { OPERATOR_KEY, startUnderFire } from "./money-under-fire.ts";

/** `OVERSPEND_SEEDS=50` for the long run; `OVERSPEND_SEED` for the first of them, to see one again. */
const SEEDS = Number(process.env["OVERSPEND_SEEDS"] ?? 2);
const FIRST_SEED = Number(process.env["OVERSPEND_SEED"] ?? Date.now() % 1_000_000);

let world: Awaited<ReturnType<typeof startUnderFire>>;
beforeAll(async () => {
  world = await startUnderFire();
});
afterAll(() => world.dispose());

/** What the responses themselves say: the money of each, added up without the help of any counter. */
async function sumOfResponses(redis: Redis) {
  const sums = { injected: 0, ok: 0, no_ad_used: 0, paidMicros: 0 };
  for (const key of await redis.keys("{adserver}:response:*")) {
    const [outcome, verdict, paid] = await redis.hmget(key, "outcome", "verdict", "paid_micros");
    sums.injected += outcome === "ok" ? 1 : 0;
    sums.paidMicros += Number(paid);
    if (verdict === "ok" || verdict === "no_ad_used") {
      sums[verdict] += 1;
    }
  }
  return sums;
}

async function sumOfSpent(redis: Redis): Promise<number> {
  const ads = await redis.smembers(ADS_KEY);
  const spent = await Promise.all(ads.map((ad) => redis.hget(adKey(ad), "spent")));
  return spent.reduce((sum, micros) => sum + Number(micros), 0);
}

test.each(Array.from({ length: SEEDS }, (_, index) => FIRST_SEED + index))(
  "seed %i: no budget is overspent through kill -9, and the books balance",
  async (seed) => {
    const round = await world.round(makeRandom(`overspend-${seed}`));
    expect(round.overspends).toEqual([]);
    expect(round.looks).toBeGreaterThan(50);

    // What was left behind by the killed is released by those who live.
    const totals = await eventually(async () => {
      const { body } = await get(`${world.url(0)}/reports/spend`, OPERATOR_KEY);
      const { totals: found } = Object(body);
      expect(found.pending).toBe(0);
      return found;
    }, 10_000);
    const books = await sumOfResponses(world.redis);
    expect(totals.requests).toBe(totals.injected + totals.rejected + totals.no_fill);
    expect(totals.injected).toBe(totals.ok + totals.no_ad_used + totals.expired);
    expect(totals).toMatchObject({ injected: books.injected, ok: books.ok, no_ad_used: books.no_ad_used });
    expect(totals).toMatchObject({ reserved_micros: 0, spent_micros: books.paidMicros });
    expect(await sumOfSpent(world.redis)).toBe(books.paidMicros);

    // Nobody was told more than the books hold; a caller that was cut off may have been told less.
    expect(round.served).toBeLessThanOrEqual(totals.injected);
    expect(round.acknowledged.get("ok") ?? 0).toBeLessThanOrEqual(totals.ok);
    // The round was worth something: money was spent, and the budgets didn't last for everybody.
    expect(totals.spent_micros).toBeGreaterThan(0);
    expect(totals.no_fill).toBeGreaterThan(0);
  },
);
