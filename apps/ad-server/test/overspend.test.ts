import { eventually, makeRandom } from "@adrelay/testkit";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ADS_KEY, adKey } from "../src/store/keys.ts";
import { get } from "./ad-server.ts";
import { OPERATOR_KEY, startOverspendTest } from "./overspend-round.ts";

/** `OVERSPEND_SEEDS=50` makes a long run. `OVERSPEND_SEED` sets the first seed, to repeat a round. */
const SEEDS = Number(process.env["OVERSPEND_SEEDS"] ?? 2);
const FIRST_SEED = Number(process.env["OVERSPEND_SEED"] ?? Date.now() % 1_000_000);

let servers: Awaited<ReturnType<typeof startOverspendTest>>;
beforeAll(async () => {
  servers = await startOverspendTest();
});
afterAll(() => servers.dispose());

/** Adds up the money of all responses, without using any counter. */
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
  "seed %i: despite kill -9 no budget is overspent and the counters balance",
  async (seed) => {
    const round = await servers.round(makeRandom(`overspend-${seed}`));
    expect(round.overspends).toEqual([]);
    expect(round.reads).toBeGreaterThan(50);

    // The surviving process releases the reservations of the killed one.
    const totals = await eventually(async () => {
      const { body } = await get(`${servers.url(0)}/reports/spend`, OPERATOR_KEY);
      const { totals: found } = Object(body);
      expect(found.pending).toBe(0);
      return found;
    }, 10_000);
    const responses = await sumOfResponses(servers.redis);
    expect(totals.requests).toBe(totals.injected + totals.rejected + totals.no_fill);
    expect(totals.injected).toBe(totals.ok + totals.no_ad_used + totals.expired);
    expect(totals).toMatchObject({
      injected: responses.injected,
      ok: responses.ok,
      no_ad_used: responses.no_ad_used,
    });
    expect(totals).toMatchObject({ reserved_micros: 0, spent_micros: responses.paidMicros });
    expect(await sumOfSpent(servers.redis)).toBe(responses.paidMicros);

    // No caller got more successes than are counted. A caller whose connection was cut may have got fewer.
    expect(round.served).toBeLessThanOrEqual(totals.injected);
    expect(round.acknowledged.get("ok") ?? 0).toBeLessThanOrEqual(totals.ok);
    // The round tested something: money was spent, and some requests found no budget.
    expect(totals.spent_micros).toBeGreaterThan(0);
    expect(totals.no_fill).toBeGreaterThan(0);
  },
);
