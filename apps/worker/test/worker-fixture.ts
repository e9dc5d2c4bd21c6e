/** A worker with a provider and a Redis of its own. Its acknowledgments are taken and queued as a gateway does it. */
import { randomUUID } from "node:crypto";
import { adAckIdSchema, adResponseIdSchema, type DeliveryJob, publisherIdSchema } from "@adrelay/contract";
import { startTestRedis } from "@adrelay/dev-servers";
import { Ledger, Taker } from "@adrelay/ledger";
import { DeliveryQueue } from "@adrelay/queue";
import { startApp, startScriptedProvider } from "@adrelay/testkit";
import { Redis } from "ioredis";

const publisher = publisherIdSchema.parse("default");

/** `onStop`: told of how to stop each part, in the order in which they were started. */
export async function openWorkerFixture(
  onStop: (stop: () => unknown) => void,
  redisArgs: readonly string[] = [],
) {
  const server = await startTestRedis(redisArgs);
  onStop(() => server.dispose());
  const redis = new Redis(server.url, { maxRetriesPerRequest: null });
  redis.on("error", () => {});
  onStop(() => redis.disconnect());
  const provider = await startScriptedProvider();
  onStop(() => provider.close());
  const queue = new DeliveryQueue({ redis });
  onStop(() => queue.close());
  const ledger = new Ledger({ redis, recordRetentionMs: 60_000 });
  const taker = new Taker({
    redis,
    insertion: queue.insertion(),
    takesUnknown: true,
    inTime: (call) => call,
  });
  const take = async (more: Partial<DeliveryJob> = {}) => {
    const job = newJob(more);
    const { adResponseId: id } = job;
    await taker.take({ id, publisher, textHash: "hash", job: queue.jobToInsert(job) });
    return id;
  };
  /** `places`: how many attempts it makes at once. */
  const startWorker = async (places: number) => {
    const worker = await startApp("worker", {
      REDIS_URL: server.url,
      PROVIDER_URL: provider.url,
      PROVIDER_API_KEY: "key",
      API_KEYS: "key",
      WORKER_OPS_PORT: "0",
      WORKER_CONCURRENCY: String(places),
    });
    onStop(() => worker.stop());
    return worker;
  };
  return { server, redis, provider, queue, ledger, take, startWorker };
}

export function newJob(more: Partial<DeliveryJob> = {}): DeliveryJob {
  const adResponseId = adResponseIdSchema.parse(randomUUID());
  return {
    v: 1,
    adResponseId,
    adAckId: adAckIdSchema.parse(randomUUID()),
    publisher,
    body: JSON.stringify({ ad_response_id: adResponseId }),
    requestId: "r",
    ...more,
  };
}
