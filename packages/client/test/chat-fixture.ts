/** A real relay before a scripted service, and a model's server, for the tests of the SDKs' helpers. */
import { startTestRedis } from "@adrelay/dev-servers";
import { eventually, filled, startRelayStack, startScriptedProvider, TEST_API_KEY } from "@adrelay/testkit";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { createRelay, type Relay, type RelayEvent, type RelayOptions } from "../src/index.ts";
import { type ModelServer, startModelServer } from "./model-server.ts";

export const PROMPT_WITH_AD = "a prompt with an ad";
export const CONTEXT = {
  request_context: { session_id: "s-1", user_agent: "Mozilla/5.0", user_ip: "203.0.113.7" },
};

export interface Chat {
  readonly relay: Relay;
  readonly relayUrl: string;
  readonly server: ModelServer;
  readonly events: RelayEvent[];
  /** From now on the service puts its ad around the prompt and leaves it as it is. */
  wrapPrompts(): void;
  /** The ad responses that were injected. */
  injectedIds(): string[];
  /** Waits until the service has one acknowledgment for each ad, and gives their texts. */
  acknowledgedTexts(): Promise<unknown[]>;
}

/** Starts the relay for the file, and gives each test a client and a model's server. */
export function useChat(): (options?: Partial<RelayOptions>) => Promise<Chat> {
  const started = Promise.withResolvers<Awaited<ReturnType<typeof startAll>>>();
  beforeAll(async () => started.resolve(await startAll()));
  afterAll(async () => (await started.promise).stop());
  return async (options = {}) => {
    const { stack, provider } = await started.promise;
    const server = await startModelServer();
    const events: RelayEvent[] = [];
    const relay = createRelay({
      url: stack.gatewayUrl,
      apiKey: TEST_API_KEY,
      timeoutMs: 10_000,
      onEvent: (event) => events.push(event),
      ...options,
    });
    onTestFinished(async () => {
      await relay.close({ timeoutMs: 5000 });
      await server.close();
    });
    const injectedIds = () =>
      events.flatMap((event) => (event.kind === "injected" ? [event.adResponseId] : []));
    const textsOf = (id: string) =>
      provider.acknowledgmentsOf(id).map(({ fields }) => fields["llm_response"]);
    const acknowledgedTexts = async () => {
      await eventually(() => expect(events.filter(isAccepted)).toHaveLength(injectedIds().length));
      await eventually(() =>
        expect(injectedIds().map((id) => textsOf(id).length)).toEqual(injectedIds().map(() => 1)),
      );
      return injectedIds().flatMap(textsOf);
    };
    const wrapPrompts = () => {
      provider.onStart(({ fields }) => filled({ enhanced_prompt: `<ad>${fields["prompt"]}</ad>` }));
      onTestFinished(() => provider.onStart(() => filled()));
    };
    const { gatewayUrl: relayUrl } = stack;
    return { relay, relayUrl, server, events, wrapPrompts, injectedIds, acknowledgedTexts };
  };
}

const isAccepted = ({ kind }: RelayEvent) => kind === "accepted";

async function startAll() {
  const [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  const stack = await startRelayStack({ redis, providerUrl: provider.url });
  const stop = async () => {
    await stack.stop();
    await Promise.all([provider.close(), redis.dispose()]);
  };
  return { stack, provider, stop };
}
