/** The naive gateway: Express, zod and queue.add, nothing else. No ledger, no fixed ids, no limits. */
import { ACKNOWLEDGE_PATH } from "@adrelay/contract";
import { Queue } from "bullmq";
import express from "express";
import { z } from "zod";

const acknowledgmentSchema = z.object({ ad_response_id: z.guid(), llm_response: z.string() });

const queue = new Queue(process.env["QUEUE"] ?? "", { connection: { url: process.env["REDIS_URL"] ?? "" } });
const app = express();
app.post(ACKNOWLEDGE_PATH, express.json({ limit: "1mb" }), async (request, response) => {
  const acknowledgment = acknowledgmentSchema.parse(request.body);
  const job = await queue.add("acknowledge", acknowledgment);
  response.status(201).json({ ad_ack_id: job.id, status: "recoverable_error", success: false });
});
const server = app.listen(Number(process.env["PORT"]), "127.0.0.1", () => process.send?.({ kind: "ready" }));
for (const end of ["SIGTERM", "disconnect"]) {
  process.on(end, () => {
    server.closeAllConnections();
    process.exit(0);
  });
}
