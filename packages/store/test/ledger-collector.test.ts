/** The ledger's metrics on a real Redis, with more publishers than one step of a reading has. */
import { publisherIdSchema } from "@adrelay/contract";
import { eventually } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { jobOf, newId, openTestRedis, openTestStore, type StoreFixture } from "./store-fixture.ts";

const { server, redis } = await openTestRedis({ maxRetriesPerRequest: 1 });

const PUBLISHERS = Array.from({ length: 60 }, (_, at) => publisherIdSchema.parse(`publisher-${at}`));
const SCRAPES = 20;

const publisherAt = (at: number) => PUBLISHERS[at % PUBLISHERS.length] ?? expect.fail("there are publishers");

/** One ad of a publisher, acknowledged and delivered. */
async function runAd({ injections, acknowledgments, settle }: StoreFixture, at: number): Promise<void> {
  const [id, publisher] = [newId(), publisherAt(at)];
  await injections.record({ id, publisher, outcome: "ok", deadlineMs: 60_000 });
  await acknowledgments.accept({ job: { ...jobOf(id), publisher }, textHash: "hash" });
  await settle(id, at % 7 === 0 ? "die" : "deliver");
}

function collect(fixture: Pick<StoreFixture, "metrics">, publishersMax: number) {
  const ledger = fixture.metrics({ listPublishers: () => PUBLISHERS, publishersMax });
  return async () => new Map((await ledger.collect()).map((metric) => [metric.name, [...metric.samples()]]));
}

test("the books balance in every scrape while ads of many publishers run", async () => {
  const fixture = openTestStore(redis);
  const scrape = collect(fixture, PUBLISHERS.length);
  let isRunning = true;
  const traffic = Array.from({ length: 4 }, async (_, lane) => {
    for (let at = lane; isRunning; at += 4) {
      await runAd(fixture, at);
    }
  });
  const imbalances: (number | undefined)[] = [];
  for (let round = 0; round < SCRAPES; round += 1) {
    imbalances.push((await scrape()).get("adrelay_books_imbalance")?.[0]?.value);
  }
  isRunning = false;
  await Promise.all(traffic);
  expect(imbalances).toEqual(Array.from({ length: SCRAPES }, () => 0));
});

test("a scrape shows every count of every publisher, and dead letters by reason", async () => {
  const fixture = openTestStore(redis);
  await Promise.all(PUBLISHERS.map((_, at) => runAd(fixture, at)));
  const samples = await collect(fixture, PUBLISHERS.length)();
  const shown = (name: string, labels: Readonly<Record<string, string>>) =>
    samples
      .get(name)
      ?.filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value));
  for (const [at, publisher] of PUBLISHERS.entries()) {
    const dead = at % 7 === 0 ? 1 : 0;
    expect(shown("adrelay_acknowledgments", { publisher, state: "delivered" })).toMatchObject([
      { value: 1 - dead },
    ]);
    expect(shown("adrelay_dead_letters", { publisher, reason: "http_400" })).toMatchObject([{ value: dead }]);
    expect(shown("adrelay_acknowledgments_accepted_total", { publisher })).toMatchObject([{ value: 1 }]);
  }
});

test("scrapes at the same time add nothing twice to the counters of other", async () => {
  const fixture = openTestStore(redis);
  const scrape = collect(fixture, 1);
  await scrape();
  await Promise.all(PUBLISHERS.map((_, at) => runAd(fixture, at)));
  const scrapes = await Promise.all(Array.from({ length: 5 }, () => scrape()));
  const others = scrapes.map((samples) =>
    samples
      .get("adrelay_acknowledgments_accepted_total")
      ?.find(({ labels }) => labels["publisher"] === "other"),
  );
  expect(others.map((sample) => sample?.value)).toEqual(Array.from({ length: 5 }, () => PUBLISHERS.length));
});

test("without Redis a scrape has no metrics of the ledger, and has them again afterwards", async () => {
  const own = new Redis(server.url, {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    lazyConnect: true,
  });
  const scrape = collect(openTestStore(own), PUBLISHERS.length);
  expect((await scrape()).size).toBe(0);
  await eventually(async () => {
    expect((await scrape()).get("adrelay_books_imbalance")).toMatchObject([{ value: 0 }]);
  });
  own.disconnect();
});
