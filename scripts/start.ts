/** `npm start`: the whole of Adrelay on this machine, until Ctrl-C. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { ACKNOWLEDGE_PATH, API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import { RedisStartError } from "@adrelay/dev-servers";
import { DEMO_INJECTION, runDemo } from "./start/demo.ts";
import { parseStartOptions, START_HELP } from "./start/options.ts";
import { PartError } from "./start/part.ts";
import { type RunFile, takeLock } from "./start/run-file.ts";
import { unknownSettings } from "./start/settings-check.ts";
import { type Stack, startStack } from "./start/stack.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
/** Data, logs and keys of the local stack. */
const HOME = process.env["ADRELAY_HOME"] || join(ROOT, ".adrelay");
const LOCK = join(HOME, "start.lock");
const EXIT_USAGE = 2;

const say = (line: string) => console.log(line);

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  const options = parseStartOptions(args);
  switch (options.kind) {
    case "help":
      say(START_HELP);
      return;
    case "faulty":
      console.error(`npm start: ${options.why}\n\n${START_HELP}`);
      process.exit(EXIT_USAGE);
      return;
    case "run":
      await run(options.port, options.hasDemo);
      return;
    default:
      options satisfies never;
  }
}

async function run(gatewayPort: number | undefined, hasDemo: boolean): Promise<void> {
  const lock = takeLock(LOCK);
  if (lock.kind === "held") {
    console.error(
      `npm start: Adrelay runs in this folder already (pid ${lock.pid}); ${join(HOME, "run.json")} tells where.`,
    );
    process.exit(1);
  }
  loadEnvFile(join(ROOT, ".env"));
  const giveUp = new AbortController();
  const starting = startStack({ home: HOME, env: process.env, gatewayPort, say, signal: giveUp.signal });
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
      await showDemo(stack);
    }
    printAddresses(stack.run);
  } catch (error) {
    if (!giveUp.signal.aborted) {
      await fail(error, starting);
    }
  }
}

/** A demo that goes wrong is told, and stops nothing: the stack is there to look into it. */
async function showDemo({ run, demoHindrance }: Stack): Promise<void> {
  if (demoHindrance !== undefined) {
    say(`\nNo demo: ${demoHindrance}.`);
    return;
  }
  say("\nOne injection and its acknowledgment, through all of it:");
  try {
    await runDemo(run.gateway, run.apiKey, say);
  } catch (error) {
    say(`  The demo did not end well: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function loadEnvFile(file: string): void {
  if (existsSync(file)) {
    process.loadEnvFile(file);
    const unknown = unknownSettings(Object.keys(parseEnv(readFileSync(file, "utf8"))));
    if (unknown.length > 0) {
      say(`.env: no part knows ${unknown.join(", ")}`);
    }
  }
}

/** Says what went wrong, stops what runs, and ends with 1. */
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

/** The first signal stops everything in order; what comes meanwhile changes nothing. */
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

function printAddresses({ gateway, gatewayOps, workerOps, adServer, apiKey, adminToken }: RunFile): void {
  const headers = `-H '${API_KEY_HEADER}: ${apiKey || "KEY"}' -H 'Content-Type: application/json'`;
  say(`
Adrelay runs. Ctrl-C stops it.
  gateway      ${gateway}
  gateway ops  ${gatewayOps}   metrics, health, admin API (token: ${adminToken})
  worker ops   ${workerOps}   metrics, health
  ad server    ${adServer}
  API key      ${apiKey || "one of your publishers'"}

An injection:
  curl -s ${gateway}${INJECTION_PATH} ${headers} -d '${JSON.stringify(DEMO_INJECTION)}'
Its acknowledgment, with the ad_response_id of the answer:
  curl -s ${gateway}${ACKNOWLEDGE_PATH} ${headers} -d '{"ad_response_id": "...", "llm_response": "..."}'
How all of it stands, from another terminal:
  npm run adrelay -- status
`);
}
