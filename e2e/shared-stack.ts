/** One relay stack for the tests of a `describe`, in which each test has a provider and publishers of its own. */
import { startTestRedis } from "@adrelay/dev-servers";
import {
  type RelayStack,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  writePublishersFile,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect } from "vitest";

export interface SharedStack {
  /** How many tests there are. */
  readonly tests: number;
  /** Each test has a publisher of each of these names. */
  readonly publishers: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** What one test has of the stack. */
export interface OwnPart {
  readonly relay: RelayStack;
  readonly provider: ScriptedProvider;
  /** The id of the test's publisher of this name. */
  idOf(name: string): string;
}

/** Starts the stack before the tests and stops it after them. Returns what gives each test its part. */
export function shareStack(options: SharedStack): () => OwnPart {
  let stack: Awaited<ReturnType<typeof startStack>>;
  beforeAll(async () => {
    stack = await startStack(options);
  });
  afterAll(() => stack.stop());
  return () => stack.take();
}

async function startStack({ tests, publishers, env }: SharedStack) {
  const redis = await startTestRedis();
  const free = await Promise.all(
    Array.from({ length: tests }, async (_, at) => ({
      idOf: (name: string) => `${name}-${at}`,
      provider: await startScriptedProvider(),
    })),
  );
  const providers = free.map(({ provider }) => provider);
  const file = writePublishersFile(
    free.flatMap(({ idOf, provider: { url } }) =>
      publishers.map((name) => ({ id: idOf(name), providerUrl: url, keyEnv: "PROVIDER_KEY" })),
    ),
  );
  const relay = await startRelayStack({
    redis,
    providerUrl: "http://127.0.0.1:9",
    env: { API_KEYS: "", PUBLISHERS_FILE: file.path, PROVIDER_KEY: "key-at-each-provider", ...env },
  });
  return {
    take: (): OwnPart => {
      const own = free.pop() ?? expect.fail("there are more tests than parts of the stack");
      return { relay, ...own };
    },
    stop: async () => {
      await relay.stop();
      await Promise.all([...providers.map((provider) => provider.close()), redis.dispose()]);
      file.remove();
    },
  };
}
