/** The provider's client and its clock keep the contract of start and stop. They have nothing to start but calls. */
import { type ScriptedProvider, startScriptedProvider } from "@adrelay/testkit";
import { startStopSuite } from "@adrelay/testkit/start-stop-suite";
import { afterAll, beforeAll } from "vitest";
import { NO_PROXIES, ProviderClient, Ways } from "../src/index.ts";
import { RunningClock } from "../src/running-clock.ts";

let provider: ScriptedProvider;

beforeAll(async () => {
  provider = await startScriptedProvider();
  provider.onStart(() => ({ kind: "hang" }));
});
afterAll(() => provider.close());

startStopSuite(
  "the provider's client",
  () => {
    const client = new ProviderClient();
    let running = 0;
    return {
      start: () => {
        const { reply } = client.startInjection({
          account: { url: provider.url, apiKey: "k", apiKeyHeader: "X-Key" },
          body: "{}",
          requestId: "r",
          timeoutMs: 60_000,
        });
        running += 1;
        void reply.then(() => {
          running -= 1;
        });
      },
      stop: () => client.stop(),
      isRunning: () => running > 0,
    };
  },
  { isRunning: (part) => part.isRunning() },
);

startStopSuite(
  "the ways to servers",
  () => {
    const ways = new Ways(NO_PROXIES, { allowH2: false });
    let running = 0;
    return {
      start: () => {
        const { dispatcher, target } = ways.find(new URL(provider.url), undefined);
        running += 1;
        const end = () => {
          running -= 1;
        };
        const path = "/api/ad-injection/start/";
        dispatcher.request({ ...target, path, method: "POST", body: "{}" }).then(end, end);
      },
      stop: () => ways.stop(),
      isRunning: () => running > 0,
    };
  },
  { isRunning: (part) => part.isRunning() },
);

startStopSuite("the running clock", () => {
  const clock = new RunningClock();
  return { start: () => clock.startLimit(0, () => {}), stop: () => clock.stop() };
});
