/** Real parts for tests: processes of the apps, a scripted provider, callers. Only tests and benchmarks import it. */
export { APP_BUNDLES_VARIABLE } from "./app-programs.ts";
export { codeBlocks, readDocument } from "./code-blocks.ts";
export { type DemoModel, startDemoModel } from "./demo-model.ts";
export {
  dumpRedis,
  eventually,
  fetchLedgerMetrics,
  fetchMetrics,
  parseMetrics,
  pause,
  type Samples,
  sumOf,
} from "./inspection.ts";
export { manifestsThatName } from "./manifests.ts";
export { type CollectedSpan, type OtlpCollector, startOtlpCollector } from "./otlp-collector.ts";
export {
  type AppName,
  type AppProcess,
  AppStartError,
  type CommandOptions,
  type EndedCommand,
  type RunningCommand,
  startAdrelay,
  startApp,
} from "./processes.ts";
export { callerKeyOf, type PublishersFile, writePublishersFile } from "./publishers-file.ts";
export { makeRandom, type Random } from "./random.ts";
export {
  type Answer,
  type RelayCaller,
  relayCaller,
  type SendOptions,
  TEST_INJECTION,
  unknownId,
} from "./relay-caller.ts";
export {
  type AdServerProcess,
  type RelayStack,
  startAdServer,
  startRelayStack,
  TEST_ADMIN_TOKEN,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
} from "./relay-stack.ts";
export {
  acknowledged,
  type Behaviour,
  filled,
  type Script,
  type ScriptedProvider,
  startScriptedProvider,
  unfilled,
} from "./scripted-provider.ts";
export { type SocketProxy, startSocketProxy } from "./socket-proxy.ts";
