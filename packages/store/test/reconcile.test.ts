/** Guards against an acknowledgment that the ledger calls queued forever, while the queue doesn't hold it any more. */
import { eventually } from "@adrelay/testkit";
import { afterEach, expect, test } from "vitest";
import { newJob, openTestQueue } from "./queue-fixture.ts";
import { openTestRedis } from "./store-fixture.ts";

const LONG_MS = 3_600_000;

const { redis } = await openTestRedis({ maxRetriesPerRequest: null });
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

function setup() {
  const fixture = openTestQueue(redis, (stop) => stops.push(stop));
  const { acknowledgments, maintenance, key } = fixture;
  /** An acknowledgment that was queued this long ago. */
  const queued = async (ageMs: number) => {
    const job = newJob();
    const { adResponseId: id } = job;
    await acknowledgments.accept({ job, textHash: "hash" });
    await redis.zincrby(key("queued"), -ageMs, id.replaceAll("-", ""));
    return id;
  };
  return { ...fixture, reconcile: () => maintenance.reconcile(), queued };
}

const LOST = { state: "dead", death: { reason: "payload_lost" } };

test("a queued acknowledgment whose text is gone becomes a dead letter that says so", async () => {
  const { find, queue, reconcile, queued } = setup();
  const [lost, young, whole] = [await queued(LONG_MS), await queued(0), await queued(LONG_MS)];
  await queue.remove(lost);
  await queue.remove(young);
  await reconcile();
  expect(await find(lost)).toMatchObject(LOST);
  expect(await find(young)).toMatchObject({ state: "queued" });
  expect(await find(whole)).toMatchObject({ state: "queued" });
});

test("a queued acknowledgment whose job has failed is put back", async () => {
  const { find, queue, reconcile, queued, work } = setup();
  const id = await queued(LONG_MS);
  const worker = work(async () => ({ kind: "failed", reason: "http_400" }));
  await eventually(async () => expect((await queue.depths()).failed).toBe(1));
  await worker.stop();
  await reconcile();
  expect(await queue.depths()).toMatchObject({ failed: 0, waiting: 1 });
  expect(await find(id)).toMatchObject({ state: "queued" });
});

test("rounds walk through more entries than one batch holds, and begin again", async () => {
  const { find, queue, reconcile, queued } = setup();
  const youngest = await queued(LONG_MS / 2);
  const oldest = await queued(LONG_MS * 2);
  await Promise.all(Array.from({ length: 148 }, (_, at) => queued(LONG_MS + at)));
  await queue.remove(youngest);
  await reconcile();
  expect(await find(youngest)).toMatchObject({ state: "queued" });
  await reconcile();
  expect(await find(youngest)).toMatchObject({ state: "dead" });
  await queue.remove(oldest);
  await reconcile();
  await reconcile();
  expect(await find(oldest)).toMatchObject({ state: "dead" });
});

test("a delayed job whose attempt is overdue comes back", async () => {
  const { queue, reconcile, queued, work } = setup();
  await queued(LONG_MS);
  const worker = work(async () => ({ kind: "delayed", delayMs: LONG_MS }));
  await eventually(async () => expect((await queue.depths()).delayed).toBe(1));
  await worker.stop();
  await reconcile();
  expect(await queue.depths()).toMatchObject({ delayed: 0, waiting: 1 });
});
