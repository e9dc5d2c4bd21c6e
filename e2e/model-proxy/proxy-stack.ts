/** Model proxies on one Redis, with a relay, a demo model, and a scripted ad service whose every ad has its own name. */
import { randomUUID } from "node:crypto";
import { API_KEY_HEADER } from "@adrelay/contract";
import { startTestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  eventually,
  filled,
  startApp,
  startDemoModel,
  startRelayStack,
  startScriptedProvider,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { expect } from "vitest";

export interface ProxyStackOptions {
  readonly proxies: number;
  /** Further settings of all processes of the relay. */
  readonly env?: Readonly<Record<string, string>>;
  /** The model's pause between two events. */
  readonly modelDelayMs?: number;
}

export type ProxyStack = Awaited<ReturnType<typeof startProxyStack>>;

/** The headers of a backend that wants ads for this user. */
export function headersOf(session: string): Record<string, string> {
  return {
    [API_KEY_HEADER]: TEST_API_KEY,
    "X-Adrelay-Session-Id": session,
    "X-Adrelay-User-Agent": "Mozilla/5.0",
    "X-Adrelay-User-IP": "203.0.113.7",
  };
}

export async function startProxyStack({ proxies: count, env = {}, modelDelayMs = 2 }: ProxyStackOptions) {
  const [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  const adIds: string[] = [];
  const sessions = new Map<string, unknown>();
  provider.onStart(({ fields }) => {
    const id = randomUUID();
    sessions.set(id, sessionIn(fields));
    const product = `Velmora ${adIds.push(id)}.`;
    return filled({
      ad_response_id: id,
      enhanced_prompt: promptWithAd(String(fields["prompt"]), product),
    });
  });
  const [stack, model] = await Promise.all([
    startRelayStack({ redis, providerUrl: provider.url, env }),
    startDemoModel({ DEMO_MODEL_DELAY_MS: String(modelDelayMs) }),
  ]);
  const startProxy = () =>
    startApp("proxy", {
      REDIS_URL: redis.url,
      PROVIDER_URL: provider.url,
      PROVIDER_API_KEY: TEST_PROVIDER_KEY,
      API_KEYS: TEST_API_KEY,
      PROXY_PORT: "0",
      PROXY_OPS_PORT: "0",
      OPENAI_BASE_URL: model.openAiUrl,
      ANTHROPIC_BASE_URL: model.url,
      PROXY_DRAIN_MS: "0",
      // Far more than the default, so that a busy machine costs no ad.
      PROXY_INJECTION_TIMEOUT_MS: "10000",
      SHUTDOWN_TIMEOUT_MS: "5000",
      ...env,
    });
  const proxies = await Promise.all(Array.from({ length: count }, startProxy));
  const textsOf = (id: string) => provider.acknowledgmentsOf(id).map(({ fields }) => fields["llm_response"]);
  return {
    provider,
    model,
    relay: stack,
    proxyUrls: proxies.map(urlOf),
    /** The ads that were sold, in their order. */
    adIds,
    /** The session that an ad was sold to. */
    sessionOf: (id: string) => sessions.get(id),
    opsUrls: [...proxies.map(opsUrlOf), stack.gatewayOpsUrl, stack.workerOpsUrl],
    textsOf,
    /** Waits for the one acknowledgment of an ad response, and gives its text. */
    acknowledgedText: async (id: string | undefined, timeoutMs?: number): Promise<string> => {
      await eventually(() => expect(textsOf(String(id))).toHaveLength(1), timeoutMs);
      return String(textsOf(String(id))[0]);
    },
    /** The ad calls of a session. */
    adCallsOf: (session: string) =>
      provider.posts.filter(
        ({ operation, fields }) => operation === "start" && sessionIn(fields) === session,
      ),
    stop: async () => {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await stack.stop();
      await Promise.all([model.stop(), provider.close()]);
      await redis.dispose();
    },
  };
}

const sessionIn = (fields: Readonly<Record<string, unknown>>): unknown =>
  Object(fields["request_context"])["session_id"];
const urlOf = ({ listening }: AppProcess) => `http://127.0.0.1:${String(listening["port"])}`;
const opsUrlOf = ({ listening }: AppProcess) => `http://127.0.0.1:${String(listening["ops_port"])}`;

/** In the format of our ad server, so that the demo model names the product. */
function promptWithAd(prompt: string, product: string): string {
  return [
    "<sponsored_product_1>",
    `<product>${product}</product>`,
    "</sponsored_product_1>",
    "<user_message_1>",
    prompt,
    "</user_message_1>",
  ].join("\n");
}
