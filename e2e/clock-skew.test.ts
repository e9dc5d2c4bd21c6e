/** Guards against an acknowledgment that waits too long because a worker with a wrong clock delayed it. */
import { fileURLToPath } from "node:url";
import { startTestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  eventually,
  relayCaller,
  startApp,
  startRelayStack,
  startScriptedProvider,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { expect, test } from "vitest";

const AHEAD_MS = 300_000;
const SHIFTED_CLOCK = fileURLToPath(new URL("chaos/shifted-clock.ts", import.meta.url));

test("a job that a worker with a fast clock delayed is run in time by another", async () => {
  const [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  provider.onAcknowledge((_post, count) => (count === 0 ? { kind: "answer", status: 500 } : acknowledged()));
  const stack = await startRelayStack({ redis, providerUrl: provider.url, env: { RETRY_SCHEDULE: "1s" } });
  await stack.apps.get("worker")?.stop();
  const fast = await startApp(
    "worker",
    {
      REDIS_URL: redis.url,
      PROVIDER_URL: provider.url,
      PROVIDER_API_KEY: TEST_PROVIDER_KEY,
      WORKER_OPS_PORT: "0",
      RETRY_SCHEDULE: "1s",
      CHAOS_CLOCK_SKEW_MS: String(AHEAD_MS),
    },
    { nodeArgs: ["--import", SHIFTED_CLOCK] },
  );
  const caller = relayCaller(stack.gatewayUrl);
  const { body } = await caller.inject();
  const id = String(body["ad_response_id"]);
  await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
  await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(1));
  await eventually(async () => expect((await caller.lookUp(id)).body["attempts"]).toBe(1));
  await fast.stop();
  await stack.start("worker");
  await eventually(async () => expect((await caller.lookUp(id)).body["state"]).toBe("delivered"), 15_000);
  expect(provider.acknowledgmentsOf(id)).toHaveLength(2);
  await stack.stop();
  await provider.close();
  await redis.dispose();
});
