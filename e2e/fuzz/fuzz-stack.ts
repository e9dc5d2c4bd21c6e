/** Redis, ad server, gateway and worker as real processes, for requests that a fuzzer makes. */
import { startTestRedis } from "@adrelay/dev-servers";
import {
  relayCaller,
  startAdServer,
  startRelayStack,
  TEST_ADMIN_TOKEN,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
  unknownId,
} from "@adrelay/testkit";

/** A listener to fuzz, and where its document is. */
export interface FuzzTarget {
  readonly name: "public" | "admin" | "ad-server";
  readonly url: string;
}

export interface FuzzStack {
  readonly targets: readonly FuzzTarget[];
  /** Keys and tokens, as the variables that schemathesis.toml names. */
  readonly secrets: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

const REPORT_KEY = "key-for-all-reports-of-spend";

/** Enough for the links of the admin API's list: each replay makes one of them dead again. */
const DEAD_LETTERS = 20;

/** Starts all of it, with some dead letters. */
export async function startFuzzStack(): Promise<FuzzStack> {
  const redis = await startTestRedis();
  const adServer = await startAdServer(redis, TEST_PROVIDER_KEY, { AD_SERVER_REPORT_KEY: REPORT_KEY });
  const relay = await startRelayStack({
    redis,
    providerUrl: adServer.url,
    env: {
      ACK_WAIT_MS: "200",
      SESSION_HASH_KEYS: "a-key-for-the-hashes-of-sessions",
      // The fuzzer sends wrong tokens from many addresses, so that no right one has to wait.
      OPS_TRUSTED_PROXIES: "127.0.0.1",
    },
  });
  const caller = relayCaller(relay.gatewayUrl);
  const unknown = Array.from({ length: DEAD_LETTERS }, unknownId);
  await Promise.all(unknown.map((id) => caller.acknowledgeUntilAccepted(id, "An answer of the model.")));
  return {
    targets: [
      { name: "public", url: relay.gatewayUrl },
      { name: "admin", url: relay.gatewayOpsUrl },
      {
        name: "ad-server",
        url: adServer.url,
      },
    ],
    secrets: {
      FUZZ_KEY: TEST_API_KEY,
      FUZZ_TOKEN: TEST_ADMIN_TOKEN,
      FUZZ_PROVIDER_KEY: TEST_PROVIDER_KEY,
      FUZZ_REPORT_KEY: REPORT_KEY,
    },
    stop: async () => {
      await Promise.all([relay.stop(), adServer.stop()]);
      await redis.dispose();
    },
  };
}
