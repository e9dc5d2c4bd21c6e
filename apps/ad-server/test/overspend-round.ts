import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ACKNOWLEDGE_PATH, API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import { startTestRedis } from "@adrelay/dev-servers";
import { type Random, startApp } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { adKey } from "../src/store/keys.ts";
import { type Answer, injectionOf, KEY, OTHER_KEY, PROMPTS, post } from "./ad-server.ts";

/**
 * A round of the overspend test: two ad servers on one Redis, callers that use both of them, and kills at moments
 * that a seed chooses. Meanwhile a watcher reads the money of every ad.
 */
export const OPERATOR_KEY = "key-of-the-operator";
const FLOOR_MICROS = 1000;
/** Short, so that during a round some reservations end and some acknowledgments come too late. */
const ACK_WINDOW_MS = 300;
const CALLERS = 12;
const INJECTIONS = 240;

const adOf = (id: string, bidCpmMicros: number, impressions: number, more: object = {}) => ({
  id,
  product_name: `Velmora ${id}`,
  advertiser: "velmora",
  category: "running-shoes",
  description: "A trainer for running.",
  keywords: ["running shoes", "marathon"],
  landing_url: "https://velmora.example/",
  bid_cpm_micros: bidCpmMicros,
  // Not a multiple of any price.
  budget_micros: impressions * FLOOR_MICROS + 17,
  ...more,
});
const ADS = [
  adOf("drift", 4_200_000, 25),
  adOf("tempo", 3_100_000, 20, { frequency_cap: { per_session: 3, per_hours: 1 } }),
  adOf("glide", 1_900_000, 10),
];
const BUDGETS = new Map(ADS.map(({ id, budget_micros }) => [id, budget_micros]));

/** An ad that the watcher saw with more committed than its budget. */
interface Overspend {
  readonly ad: string;
  readonly committedMicros: number;
  readonly budgetMicros: number;
}

export interface RoundResult {
  readonly served: number;
  /** Acknowledgments answered with 200, by their status. */
  readonly acknowledged: ReadonlyMap<string, number>;
  readonly failedCalls: number;
  readonly overspends: readonly Overspend[];
  readonly reads: number;
}

/** Starts both ad servers and their Redis. Each seed makes one round. */
export async function startOverspendTest() {
  const folder = mkdtempSync(join(tmpdir(), "overspend-"));
  const catalog = join(folder, "catalog.yaml");
  writeFileSync(catalog, JSON.stringify(ADS));
  const server = await startTestRedis();
  const redis = new Redis(server.url);
  const launch = () =>
    startApp(
      "ad-server",
      {
        AD_SERVER_API_KEYS: `${KEY}, ${OTHER_KEY}`,
        AD_SERVER_REPORT_KEY: OPERATOR_KEY,
        AD_SERVER_PORT: "0",
        REDIS_URL: server.url,
        CATALOG_FILE: catalog,
        FLOOR_CPM_MICROS: String(FLOOR_MICROS * 1000),
        ACK_WINDOW: `${ACK_WINDOW_MS}ms`,
      },
      { onLogText: () => {} },
    );
  const apps = await Promise.all([launch(), launch()]);
  const url = (which: number) => `http://127.0.0.1:${String(apps[which % apps.length]?.listening["port"])}`;

  const crash = async (which: number) => {
    const app = apps[which];
    app?.kill("SIGKILL");
    await app?.exited;
    apps[which] = await launch();
  };
  return {
    redis,
    url,
    round: (random: Random) => runRound({ redis, url, crash, random }),
    dispose: async () => {
      redis.disconnect();
      await Promise.all(
        apps.map((app) => {
          app.kill("SIGKILL");
          return app.exited;
        }),
      );
      await server.dispose();
      rmSync(folder, { recursive: true });
    },
  };
}

interface Round {
  readonly redis: Redis;
  readonly url: (which: number) => string;
  readonly crash: (which: number) => Promise<void>;
  readonly random: Random;
}

async function runRound(round: Round): Promise<RoundResult> {
  const { redis, random } = round;
  await redis.flushall();
  const watch = watchBudgets(redis);
  const callers = new Callers(round.url, random);
  const killAt = [random.integer(10, INJECTIONS / 2), random.integer(INJECTIONS / 2 + 1, INJECTIONS - 10)];
  let restarts = Promise.resolve();
  let pendingRestarts = 0;
  let injections = 0;
  const restart = async (which: number) => {
    pendingRestarts += 1;
    // One process at a time: this tests the counters, not an outage.
    restarts = restarts.then(() => round.crash(which));
    await restarts;
    pendingRestarts -= 1;
  };
  const call = async () => {
    while (injections < INJECTIONS || pendingRestarts > 0) {
      injections += 1;
      const kill = killAt.indexOf(injections);
      if (kill >= 0) {
        void restart(kill);
      }
      await callers.injectAndAcknowledge();
      await callers.acknowledgeLate();
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  await restarts;
  return { ...callers.tally, ...(await watch.stop()) };
}

/** Calls as publishers make them: acknowledgments with and without the ad, none at all, twice, or too late. */
class Callers {
  readonly tally = { served: 0, failedCalls: 0, acknowledged: new Map<string, number>() };
  readonly #url: Round["url"];
  readonly #random: Random;
  readonly #late: { readonly sinceMs: number; acknowledge(): Promise<void> }[] = [];

  constructor(url: Round["url"], random: Random) {
    this.#url = url;
    this.#random = random;
  }

  async injectAndAcknowledge(): Promise<void> {
    const random = this.#random;
    const key = random.pick([KEY, OTHER_KEY]);
    const session_id = `s${random.integer(0, 9)}`;
    const request_context = { session_id, user_agent: "Mozilla/5.0", user_ip: "203.0.113.7" };
    const served = await this.#post(INJECTION_PATH, key, injectionOf(PROMPTS.ok, { request_context }));
    if (served.status !== 200) {
      return;
    }
    this.tally.served += 1;
    const fate = random.next();
    if (fate > 0.75) {
      return;
    }
    const body = {
      ad_response_id: served.body["ad_response_id"],
      llm_response: fate < 0.45 ? String(served.body["product_name"]) : "Any pair will do.",
    };
    if (random.chance(0.3)) {
      this.#late.push({ sinceMs: performance.now(), acknowledge: () => this.#acknowledge(key, body) });
      return;
    }
    const posts = random.chance(0.3) ? 2 : 1;
    await Promise.all(Array.from({ length: posts }, () => this.#acknowledge(key, body)));
  }

  /** Sends an acknowledgment whose window has passed: its budget may be sold again by then. */
  async acknowledgeLate(): Promise<void> {
    const [oldest] = this.#late;
    if (oldest !== undefined && performance.now() - oldest.sinceMs > 2 * ACK_WINDOW_MS) {
      this.#late.shift();
      await oldest.acknowledge();
    }
  }

  async #acknowledge(key: string, body: object): Promise<void> {
    const { status, body: answer } = await this.#post(ACKNOWLEDGE_PATH, key, body);
    if (status === 200) {
      const verdict = String(answer["status"]);
      this.tally.acknowledged.set(verdict, (this.tally.acknowledged.get(verdict) ?? 0) + 1);
    }
  }

  async #post(path: string, key: string, body: object): Promise<Pick<Answer, "status" | "body">> {
    try {
      return await post(`${this.#url(this.#random.integer(0, 1))}${path}`, body, { [API_KEY_HEADER]: key });
    } catch {
      this.tally.failedCalls += 1;
      return { status: 0, body: {} };
    }
  }
}

/** Reads the money of all ads in one step, again and again. */
function watchBudgets(redis: Redis) {
  const overspends: Overspend[] = [];
  let reads = 0;
  let isStopped = false;
  const read = async () => {
    const transaction = redis.multi();
    for (const ad of BUDGETS.keys()) {
      transaction.hmget(adKey(ad), "spent", "reserved");
    }
    const replies = (await transaction.exec()) ?? [];
    reads += 1;
    for (const [index, [ad, budgetMicros]] of [...BUDGETS].entries()) {
      const [spent, reserved] = Array.isArray(replies[index]?.[1]) ? replies[index][1] : [];
      const committedMicros = Number(spent) + Number(reserved);
      if (committedMicros > budgetMicros) {
        overspends.push({ ad, committedMicros, budgetMicros });
      }
    }
  };
  const run = async () => {
    while (!isStopped) {
      await read();
    }
  };
  const running = run();
  return {
    stop: async () => {
      isStopped = true;
      await running;
      return { overspends, reads };
    },
  };
}
