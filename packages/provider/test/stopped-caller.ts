/**
 * A process with the provider's client: makes one call to the URL of its first argument, with the time limit of its second,
 * and prints the reply. The test that starts it stops it by a signal in the meantime.
 */
import { adAckIdSchema } from "@adrelay/contract";
import { ProviderClient } from "../src/index.ts";

const [, , url = "", timeoutMs] = process.argv;
const client = new ProviderClient();
const reply = await client.acknowledge({
  account: { url, apiKey: "k", apiKeyHeader: "X-Key" },
  body: "{}",
  requestId: "r",
  adAckId: adAckIdSchema.parse("0b0f7a52-5c1c-8a0b-9a55-2f5a5f7b8f10"),
  timeoutMs: Number(timeoutMs),
});
process.stdout.write(JSON.stringify(reply));
await client.stop();
