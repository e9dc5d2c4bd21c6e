import { createHash, randomUUID } from "node:crypto";
import { adAckIdSchema, adResponseIdSchema, type DeliveryJob, publisherIdSchema } from "@adrelay/contract";
import { DEAD_REASONS } from "@adrelay/core";
import { Redis } from "ioredis";
import { Ledger } from "../../packages/ledger/src/index.ts";
import { DeliveryQueue, DeliveryWorker, type QueuedPayload } from "../../packages/queue/src/index.ts";

export const PUBLISHERS = ["acme", "globe", "herald", "times"];
const REASONS = DEAD_REASONS.filter((reason) => reason !== "payload_lost");
const BODY_CHARS = 2000;
const LANES = 64;

/** Makes dead letters as the relay does: queued, booked, and failed by a worker. */
export async function fillDeadLetters(redisUrl: string, count: number): Promise<void> {
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const ledger = new Ledger({ redis, recordRetentionMs: 86_400_000 });
  const queue = new DeliveryQueue({ redis });
  let died = 0;
  const allDead = Promise.withResolvers<void>();
  const worker = new DeliveryWorker({
    redis,
    concurrency: 100,
    attemptTimeoutMs: 10_000,
    handle: async (job, queued) => {
      const reason = await die(ledger, job, queued);
      died += 1;
      return { kind: "dead", reason };
    },
    finishWith: () => () => Promise.reject(new TypeError("a letter that is to die was finished")),
    onError: allDead.reject,
    onUnreadable: () => {},
  });
  worker.start();
  let next = 0;
  const lane = async () => {
    while (next < count) {
      next += 1;
      const job = makeJob(PUBLISHERS[next % PUBLISHERS.length] ?? "");
      await queue.enqueue(job, hashOf(job));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  const timer = setInterval(async () => {
    if (died >= count && (await queue.counts()).failed === count) {
      allDead.resolve();
    }
  }, 200);
  await allDead.promise;
  clearInterval(timer);
  await worker.close();
  await queue.close();
  redis.disconnect();
}

async function die(ledger: Ledger, job: DeliveryJob, queued: QueuedPayload): Promise<string> {
  const { adResponseId: id, publisher } = job;
  await ledger.begin({ id, publisher, ...queued });
  const reason = REASONS[Number.parseInt(id.slice(0, 4), 16) % REASONS.length] ?? "exhausted";
  await ledger.settle({
    id,
    event: "die",
    label: reason,
    code: "http_422",
    providerAckId: undefined,
    durationMs: 12,
    attemptsBefore: 0,
    delayMs: 0,
    isCounted: true,
    death: { sizeBytes: job.body.length, providerError: "validation_failed" },
    notify: undefined,
  });
  return reason;
}

function makeJob(publisher: string): DeliveryJob {
  const id = adResponseIdSchema.parse(randomUUID());
  return {
    v: 1,
    adResponseId: id,
    adAckId: adAckIdSchema.parse(randomUUID()),
    publisher: publisherIdSchema.parse(publisher),
    body: JSON.stringify({ ad_response_id: id, llm_response: "x".repeat(BODY_CHARS) }),
    requestId: "bench",
  };
}

function hashOf(job: DeliveryJob): string {
  return createHash("sha256").update(job.body).digest("base64url").slice(0, 22);
}
