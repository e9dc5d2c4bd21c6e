/** Provider accounts that come and go in a running worker. Guards against an attempt that meets another account's breaker. */
import { randomUUID } from "node:crypto";
import { adResponseIdSchema, type PublisherId, publisherIdSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { openStore } from "@adrelay/store";
import { Redis } from "ioredis";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CircuitBreakers } from "../src/circuit-breakers.ts";
import { CircuitMetrics } from "../src/circuit-metrics.ts";
import { PayloadBudget } from "../src/payload-budget.ts";

const [acme, beta] = [publisherIdSchema.parse("acme"), publisherIdSchema.parse("beta")];
const REFUSED = { health: { kind: "refusing" }, isProbe: false } as const;
const HEALTHY = { health: { kind: "healthy" }, isProbe: false } as const;

let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

const sharedOf = (id: string, publishers: readonly PublisherId[]) => ({
  id,
  name: publishers[0] ?? "",
  account: { url: "http://127.0.0.1:9", apiKey: id, apiKeyHeader: "x-api-key" },
  publishers,
});

function setup() {
  const registry = new Registry();
  const { circuits } = openStore({ redis, recordRetentionMs: 60_000, partition: randomUUID() });
  const breakers = new CircuitBreakers({
    circuits,
    accounts: [sharedOf("old", [acme]), sharedOf("stays", [beta])],
    attemptsMax: 10,
    payloads: new PayloadBudget({ bytesMax: 1000, isForOne: () => false }),
    metrics: new CircuitMetrics(registry, { providersMax: 10, slotsMax: 10 }),
    log: pino({ level: "silent" }),
  });
  const attemptOf = (publisher: PublisherId) => {
    const account = breakers.accountOf(publisher);
    if (account === undefined) {
      throw new TypeError(`${publisher} has no account`);
    }
    const member = { publisher, id: adResponseIdSchema.parse(randomUUID()) };
    return { account, member, attempted: { ...member, isFirst: true } };
  };
  const shownProviders = async () => {
    const shown = await registry.getSingleMetric("adrelay_delivery_concurrency_limit")?.get();
    return shown?.values.map(({ labels }) => labels["provider"]);
  };
  const openProviders = async () => {
    const shown = await registry.getSingleMetric("adrelay_provider_circuit_open")?.get();
    return shown?.values.filter(({ value }) => value > 0).map(({ labels }) => labels["provider"]);
  };
  return { breakers, circuits, attemptOf, shownProviders, openProviders };
}

test("a new key begins with a closed breaker while the old one's is open", async () => {
  const { breakers, attemptOf } = setup();
  const { account, member, attempted } = attemptOf(acme);
  await breakers.learn(account, attempted, REFUSED);
  expect(await breakers.learn(account, attempted, REFUSED)).toBe("open");
  await breakers.replaceAccounts([sharedOf("new", [acme]), sharedOf("stays", [beta])]);
  const next = attemptOf(acme);
  expect(next.account.shared.id).toBe("new");
  expect(await breakers.admit(next.account, member, 10)).toMatchObject({ kind: "granted", isProbe: false });
});

test("an attempt that began with a key that was replaced ends without a report", async () => {
  const { breakers, circuits, attemptOf } = setup();
  const { account, attempted } = attemptOf(acme);
  await breakers.replaceAccounts([sharedOf("new", [acme])]);
  for (let times = 0; times < 3; times += 1) {
    expect(await breakers.learn(account, attempted, REFUSED)).toBe("closed");
  }
  expect([...(await circuits.busy())]).toEqual([]);
  expect(breakers.accountOf(beta)).toBeUndefined();
});

test("an account that stays keeps its slots, and shares them with a publisher that comes", async () => {
  const { breakers, attemptOf } = setup();
  const { account, member } = attemptOf(beta);
  const admissions = await Promise.all(Array.from({ length: 10 }, () => breakers.admit(account, member, 10)));
  expect(admissions.map(({ kind }) => kind)).toEqual(Array(10).fill("granted"));
  await breakers.replaceAccounts([sharedOf("stays", [acme, beta])]);
  const came = attemptOf(acme);
  expect(came.account).toBe(account);
  const waits = await breakers.admit(came.account, came.member, 10);
  expect(waits).toEqual({ kind: "wait", why: "slots" });
  for (const admission of admissions) {
    if (admission.kind === "granted") {
      admission.free();
    }
  }
  expect(await breakers.admit(came.account, came.member, 10)).toMatchObject({ kind: "granted" });
  expect(await breakers.learn(came.account, came.attempted, HEALTHY)).toBe("closed");
});

test("metrics show the accounts that there are now", async () => {
  const { breakers, shownProviders } = setup();
  expect(await shownProviders()).toEqual(["acme", "beta"]);
  await breakers.replaceAccounts([
    sharedOf("stays", [beta]),
    sharedOf("more", [publisherIdSchema.parse("c")]),
  ]);
  expect(await shownProviders()).toEqual(["beta", "c"]);
});

test.each([
  { becomes: "goes", accounts: [sharedOf("stays", [beta])], shown: ["beta"], open: [] },
  { becomes: "gets another name", accounts: [sharedOf("old", [beta])], shown: ["beta"], open: ["beta"] },
  { becomes: "leaves its name to another", accounts: [sharedOf("new", [acme])], shown: ["acme"], open: [] },
])("an account that $becomes while Redis releases shows nothing by its old name", async (change) => {
  const { breakers, circuits, attemptOf, shownProviders, openProviders } = setup();
  const { account, attempted } = attemptOf(acme);
  await breakers.learn(account, attempted, REFUSED);
  expect(await breakers.learn(account, attempted, REFUSED)).toBe("open");
  const [released, mayGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const release = circuits.release.bind(circuits);
  circuits.release = async (...args) => {
    const answer = await release(...args);
    released.resolve();
    await mayGoOn.promise;
    return answer;
  };
  const releasing = breakers.release();
  await released.promise;
  await breakers.replaceAccounts(change.accounts);
  mayGoOn.resolve();
  await releasing;
  expect(await shownProviders()).toEqual(change.shown);
  expect(await openProviders()).toEqual(change.open);
});
