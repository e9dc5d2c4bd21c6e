/** Real processes in which each error can be made: two gateways, a worker, three ad servers, and a provider that hangs or fails. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestRedis } from "@adrelay/dev-servers";
import {
  callerKeyOf,
  startAdServer,
  startApp,
  startRelayStack,
  startScriptedProvider,
  TEST_ADMIN_TOKEN,
  writePublishersFile,
} from "@adrelay/testkit";

export const VIEW_TOKEN = "token-of-a-viewer-of-alpha";
export const METRICS_TOKEN = "token-for-the-metrics";
export const REPORT_KEY = "key-for-the-reports";
export const AD_SERVER_KEYS = {
  good: "key-of-a-publisher",
  other: "key-of-another-publisher",
  revoked: "key-that-was-revoked",
} as const;

export type ErrorStack = Awaited<ReturnType<typeof startErrorStack>>;

export async function startErrorStack() {
  const [redis, adServerRedis, provider] = await Promise.all([
    startTestRedis(),
    startTestRedis(),
    startScriptedProvider(),
  ]);
  const account = { providerUrl: provider.url, keyEnv: "PROVIDER_KEY" };
  const publishers = writePublishersFile([
    { id: "alpha", ...account },
    { id: "beta", ...account },
    { id: "tight", ...account, more: "quotas: { requests_per_second: 1, burst: 1 }" },
  ]);
  const folder = mkdtempSync(join(tmpdir(), "adrelay-errors-"));
  const operators = join(folder, "operators.yaml");
  const digest = createHash("sha256").update(VIEW_TOKEN).digest("hex");
  writeFileSync(
    operators,
    `operators:\n  - { name: viewer, role: view, publishers: [alpha], token_sha256: ["${digest}"] }\n`,
  );
  const env = {
    API_KEYS: "",
    PUBLISHERS_FILE: publishers.path,
    PROVIDER_KEY: "key-of-the-account",
    OPERATORS_FILE: operators,
    METRICS_TOKEN,
    OPS_TRUSTED_PROXIES: "127.0.0.1",
    INJECTION_FALLBACK: "error",
    INJECTION_TIMEOUT_MS: "1000",
    UNKNOWN_ACK: "reject",
    ACK_WAIT_MS: "10000",
    DELIVERY_TIMEOUT_MS: "60000",
    SHUTDOWN_TIMEOUT_MS: "1000",
  };
  const relay = await startRelayStack({ redis, providerUrl: provider.url, env });
  // It takes one call at a time, and has no admin API.
  const small = await startApp("gateway", {
    ...env,
    REDIS_URL: redis.url,
    OPERATORS_FILE: "",
    INJECTION_TIMEOUT_MS: "30000",
    GATEWAY_CALLS_IN_FLIGHT: "1",
    GATEWAY_PORT: "0",
    GATEWAY_OPS_PORT: "0",
  });
  const keys = `${AD_SERVER_KEYS.good},${AD_SERVER_KEYS.other}`;
  const revoked = { AD_SERVER_REVOKED_KEYS: AD_SERVER_KEYS.revoked, AD_SERVER_REPORT_KEY: REPORT_KEY };
  const adServer = await startAdServer(adServerRedis, keys, revoked);
  const limits = { RATE_LIMIT_PER_SECOND: "1", RATE_LIMIT_BURST: "0" };
  const slowAdServer = await startAdServer(adServerRedis, keys, limits);
  const smallAdServer = await startAdServer(adServerRedis, keys, { AD_SERVER_CALLS_IN_FLIGHT: "1" });
  return {
    redis,
    adServerRedis,
    provider,
    relay,
    small: {
      url: `http://127.0.0.1:${String(small.listening["port"])}`,
      opsUrl: `http://127.0.0.1:${String(small.listening["ops_port"])}`,
    },
    adServer,
    slowAdServer,
    smallAdServer,
    keyOf: callerKeyOf,
    adminToken: TEST_ADMIN_TOKEN,
    stop: async () => {
      await Promise.all([
        relay.stop(),
        small.stop(),
        adServer.stop(),
        slowAdServer.stop(),
        smallAdServer.stop(),
      ]);
      await Promise.all([provider.close(), redis.dispose(), adServerRedis.dispose()]);
      publishers.remove();
      rmSync(folder, { recursive: true });
    },
  };
}
