/** A worker with its own provider and Redis. Acknowledgments are accepted in the way of a gateway. */
import { randomUUID } from "node:crypto";
import { adAckIdSchema, adResponseIdSchema, type DeliveryJob, publisherIdSchema } from "@adrelay/contract";
import { startTestRedis } from "@adrelay/dev-servers";
import { openStore } from "@adrelay/store";
import { startApp, startScriptedProvider } from "@adrelay/testkit";
import { Redis } from "ioredis";

const publisher = publisherIdSchema.parse("default");

export const TEXT_HASH = "hash";

/** `onStop` is given the stop of each part, in the order in which they were started. */
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
  const store = openStore({ redis, recordRetentionMs: 60_000 });
  onStop(() => store.stop());
  const accept = async (more: Partial<DeliveryJob> = {}) => {
    const job = newJob(more);
    await store.acknowledgments.accept({ job, textHash: TEXT_HASH });
    return job.adResponseId;
  };
  const find = store.acknowledgments.find;
  /** `concurrency`: how many attempts it makes at the same time. `env`: further settings. */
  const startWorker = async (concurrency: number, env: Readonly<Record<string, string>> = {}) => {
    const worker = await startApp("worker", {
      REDIS_URL: server.url,
      PROVIDER_URL: provider.url,
      PROVIDER_API_KEY: "key",
      API_KEYS: "key-for-this-test",
      WORKER_OPS_PORT: "0",
      WORKER_CONCURRENCY: String(concurrency),
      ...env,
    });
    onStop(() => worker.stop());
    return worker;
  };
  return { server, redis, provider, store, find, accept, startWorker };
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
