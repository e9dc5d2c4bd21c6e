/** `npm start`: all of Adrelay on this machine, until Ctrl-C. The bootstrap starts it. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ACKNOWLEDGE_PATH, INJECTION_PATH } from "@adrelay/contract";
import { RedisStartError } from "@adrelay/dev-servers";
import { optionsOrExit, START_COMMAND } from "./bootstrap/command-line.mjs";
import { takeLock } from "./bootstrap/lock.mjs";
import { environment, HOME } from "./environment.ts";
import type { ModelUrls } from "./start/app-settings.ts";
import { DEMO_INJECTION, runDemo } from "./start/demo.ts";
import { runDemoTurn, turnCommand } from "./start/demo-turn.ts";
import type { RunFile } from "./start/home.ts";
import { PartError } from "./start/part-error.ts";
import { loadEnvFile } from "./start/settings.ts";
import { type Stack, startStack } from "./start/stack.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const LOCK = join(HOME, "start.lock");

const say = (line: string) => console.log(line);

const { port, hasDemo, modelUrl, anthropicUrl } = optionsOrExit("npm start", START_COMMAND);
await run({ gatewayPort: port, hasDemo, modelUrls: { openai: modelUrl, anthropic: anthropicUrl } });

interface StartOptions {
  readonly gatewayPort: number | undefined;
  readonly hasDemo: boolean;
  readonly modelUrls: ModelUrls;
}

async function run({ hasDemo, ...options }: StartOptions): Promise<void> {
  const holder = takeLock(LOCK);
  if (holder !== undefined) {
    const { pid } = holder;
    console.error(
      pid === undefined
        ? "npm start: Adrelay is just being started in this folder by another process"
        : `npm start: Adrelay already runs in this folder (pid ${pid}); its addresses are in ${join(HOME, "run.json")}. Stop it with: kill ${pid}`,
    );
    process.exit(1);
  }
  const giveUp = new AbortController();
  const starting = startWithEnvFile(options, giveUp.signal);
  handleSignals(async () => {
    giveUp.abort();
    await starting.then(
      (stack) => stack.stop(),
      () => {},
    );
  });
  try {
    const stack = await starting;
    if (hasDemo) {
      await showDemos(stack);
    }
    printAddresses(stack.run);
  } catch (error) {
    if (!giveUp.signal.aborted) {
      await fail(error, starting);
    }
  }
}

async function startWithEnvFile(options: Omit<StartOptions, "hasDemo">, signal: AbortSignal): Promise<Stack> {
  for (const line of loadEnvFile(join(ROOT, ".env"), environment)) {
    say(line);
  }
  return startStack({ home: HOME, env: environment, ...options, say, signal });
}

/** A failed demo is reported but stops nothing, so that the user can look for the cause in the running stack. */
async function showDemos({ run, demoHindrance, turnHindrance }: Stack): Promise<void> {
  if (demoHindrance === undefined) {
    say("\nDemo: one injection and its acknowledgment, through all parts:");
    await tryDemo(() => runDemo(run, say));
  } else {
    say(`\nNo demo: ${demoHindrance}.`);
  }
  if (turnHindrance === undefined) {
    say("\nDemo: one answer of a model that streams through the proxy:");
    await tryDemo(() => runDemoTurn(run, say));
  } else if (turnHindrance !== demoHindrance) {
    say(`No demo of the proxy: ${turnHindrance}.`);
  }
}

async function tryDemo(demo: () => Promise<void>): Promise<void> {
  try {
    await demo();
  } catch (error) {
    say(`  The demo failed: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Prints what went wrong, stops what runs, and exits with 1. */
async function fail(error: unknown, starting: Promise<Stack>): Promise<void> {
  const isExpected = error instanceof PartError || error instanceof RedisStartError;
  console.error(
    `npm start: ${isExpected ? error.message : String(error instanceof Error ? error.stack : error)}`,
  );
  await starting.then(
    (stack) => stack.stop(),
    () => {},
  );
  release();
  process.exit(1);
}

/** The first signal stops everything in order. Later signals are ignored. */
function handleSignals(stopAll: () => Promise<void>): void {
  let isStopping = false;
  const onSignal = () => {
    if (!isStopping) {
      isStopping = true;
      say("\nstopping");
      void stopAll().then(() => {
        release();
        say("stopped");
        process.exit(0);
      });
    }
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, onSignal);
  }
  process.on("disconnect", onSignal);
}

function release(): void {
  rmSync(LOCK, { force: true });
  rmSync(join(HOME, "run.json"), { force: true });
}

/** Where ads come from. */
function describeAdService({ adServer, adServerOps }: RunFile): string {
  if (adServer === undefined) {
    return "ad service   the one of PROVIDER_URL";
  }
  const isForSome = Boolean(environment["PUBLISHERS_FILE"]?.trim());
  const use = isForSome ? "   for publishers without a provider of their own" : "";
  return `ad server    ${adServer}${use}\n  ad server ops ${adServerOps}   metrics, health`;
}

function printAddresses(run: RunFile): void {
  const { gateway, gatewayOps, workerOps, proxy, proxyOps, demoModel, apiKey, keyHeaders, adminToken } = run;
  const headers = `-H '${keyHeaders.gateway}: ${apiKey || "KEY"}' -H 'Content-Type: application/json'`;
  say(`
Adrelay runs. Ctrl-C stops it.
  gateway      ${gateway}
  gateway ops  ${gatewayOps}   metrics, health, admin API (token: ${adminToken})
  worker ops   ${workerOps}   metrics, health
  proxy        ${proxy}   a base URL for clients of models: ${proxy}/v1
  proxy ops    ${proxyOps}   metrics, health
  ${demoModel === undefined ? "model        that of --model-url and --anthropic-url" : `demo model   ${demoModel}   answers calls of the proxy`}
  ${describeAdService(run)}
  API key      ${apiKey || "one of your publishers'"}

An injection:
  curl -s ${gateway}${INJECTION_PATH} ${headers} -d '${JSON.stringify(DEMO_INJECTION)}'
Its acknowledgment, with the ad_response_id of the answer:
  curl -s ${gateway}${ACKNOWLEDGE_PATH} ${headers} -d '{"ad_response_id": "...", "llm_response": "..."}'
An answer that streams through the proxy, with an ad that the relay acknowledges:
  ${turnCommand(run)}
The state of all parts, from another terminal:
  npm run adrelay -- status
`);
}
