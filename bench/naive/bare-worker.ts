/** The naive worker: BullMQ and undici.request. */
import { ACKNOWLEDGE_PATH } from "@adrelay/contract";
import { Worker } from "bullmq";
import { request } from "undici";

const url = `${process.env["PROVIDER_URL"] ?? ""}${ACKNOWLEDGE_PATH}`;
const worker = new Worker(
  process.env["QUEUE"] ?? "",
  async (job) => {
    const { statusCode, body } = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(job.data),
    });
    await body.dump();
    if (statusCode >= 300) {
      throw new TypeError(`status ${statusCode}`);
    }
  },
  {
    connection: { url: process.env["REDIS_URL"] ?? "" },
    concurrency: Number(process.env["WORKER_CONCURRENCY"]),
    removeOnComplete: { count: 0 },
  },
);
await worker.waitUntilReady();
process.send?.({ kind: "ready" });
for (const end of ["SIGTERM", "disconnect"]) {
  process.on(end, () => process.exit(0));
}
