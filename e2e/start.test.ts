/**
 * `npm start` as its user runs it, except that Node is already there. Each test has its own ports and processes, so some run at
 * the same time.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freeLanePort, startTestRedis } from "@adrelay/dev-servers";
import { eventually, relayCaller, startScriptedProvider } from "@adrelay/testkit";
import { describe, expect, type TestContext, test } from "vitest";
import { z } from "zod";

const runSchema = z.object({
  gateway: z.string(),
  gatewayOps: z.string(),
  workerOps: z.string(),
  proxy: z.string(),
  proxyOps: z.string(),
  adServer: z.string().optional(),
  demoModel: z.string().optional(),
  redis: z.string(),
  apiKey: z.string(),
  adminToken: z.string(),
  pids: z.record(z.string(), z.number()),
});

interface Start {
  readonly child: ChildProcess;
  output(): string;
  readonly exited: Promise<number | null>;
}

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** A home and ports for the starts of one test, which end with the test. */
async function setup({ onTestFinished }: TestContext) {
  const home = mkdtempSync(join(tmpdir(), "adrelay-start-"));
  const ports = {
    GATEWAY_PORT: String(await freeLanePort()),
    GATEWAY_OPS_PORT: String(await freeLanePort()),
    WORKER_OPS_PORT: String(await freeLanePort()),
    PROXY_PORT: String(await freeLanePort()),
    PROXY_OPS_PORT: String(await freeLanePort()),
    DEMO_MODEL_PORT: String(await freeLanePort()),
    AD_SERVER_PORT: String(await freeLanePort()),
    AD_SERVER_OPS_PORT: String(await freeLanePort()),
  };
  const started: Start[] = [];
  onTestFinished(async () => {
    for (const { child, exited } of started) {
      child.kill("SIGTERM");
      await exited;
    }
    rmSync(home, { recursive: true, force: true });
  });
  const start = (
    args: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
    script = [join(ROOT, "scripts/start.ts")],
  ): Start => {
    const one = spawnStart([...script, ...args], { ...process.env, ...ports, ADRELAY_HOME: home, ...env });
    started.push(one);
    return one;
  };
  const readRun = () => runSchema.parse(JSON.parse(readFileSync(join(home, "run.json"), "utf8")));
  return { home, ports, start, readRun };
}

function spawnStart(words: readonly string[], env: NodeJS.ProcessEnv): Start {
  const child = spawn(process.execPath, words, { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const exited = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  return { child, output: () => output, exited };
}

const running = (one: Start) => eventually(() => expect(one.output()).toContain("Ctrl-C stops it"), 60_000);

/** Waits for the process id that a process writes into a file. */
function pidIn(file: string): Promise<number> {
  return eventually(() => {
    const text = readFileSync(file, "utf8");
    expect(text).toMatch(/^\d+\n$/);
    return Number(text);
  }, 60_000);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie has ended, but its parent has not yet read its exit code.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** As `start`, in a folder that has this `.env` and the rest of the project. */
function startWithEnvFile({ home, start }: Awaited<ReturnType<typeof setup>>, text: string): Start {
  const root = join(home, "root");
  mkdirSync(root);
  for (const name of readdirSync(ROOT).filter((one) => !one.startsWith("."))) {
    symlinkSync(join(ROOT, name), join(root, name));
  }
  writeFileSync(join(root, ".env"), text);
  return start(RELAY_ALONE.args, RELAY_ALONE.env, [
    "--preserve-symlinks-main",
    join(root, "scripts/start.ts"),
  ]);
}

/** Runs a command of the output in a shell, and resolves to what it prints. */
async function runCommand(command: string): Promise<string> {
  const { stdout } = await promisify(execFile)("sh", ["-c", command], { timeout: 20_000 });
  return stdout;
}

/** A model's server that tells the paths which it was called at. */
async function startModelServer() {
  const paths: string[] = [];
  const server = createHttpServer((request, response) => {
    paths.push(request.url ?? "");
    response.end("of another server");
  });
  const port = await freeLanePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${port}`, paths, close: () => new Promise((done) => server.close(done)) };
}

const OWN_KEY = "own-key-of-a-test";

/** Asks the ad server with the key that a test has set. */
async function statusOfReport({ adServer }: z.infer<typeof runSchema>): Promise<number> {
  const headers = { "X-Service-API-Key": OWN_KEY };
  return (await fetch(`${adServer}/reports/spend`, { headers })).status;
}
const PATIENT = { headers: { Prefer: "wait=20" } };
/** So that no demo model is started, for tests that need none. */
const NO_MODEL = ["--model-url", "http://127.0.0.1:9/v1", "--anthropic-url", "http://127.0.0.1:9"];

/** Only Redis and the relay's own processes, for tests that need no other part. */
const RELAY_ALONE = {
  args: ["--no-demo", ...NO_MODEL],
  env: { PROVIDER_URL: "http://127.0.0.1:9", PROVIDER_API_KEY: "our-key" },
} as const;

describe.concurrent("npm start", () => {
  test("it shows a demo, serves callers, and leaves nothing behind after SIGTERM", async (context) => {
    const { home, start, readRun } = await setup(context);
    const one = start();
    await running(one);
    const [ofGateway = "", ofProxy = ""] = one.output().split("Demo: one answer of a model");
    expect(ofGateway).toMatch(/ 200 .*ad for[\s\S]* 201 .*recoverable_error[\s\S]*queued[\s\S]*delivered/);
    expect(ofProxy).toMatch(
      / 200 .*injected; \d+ events streamed[\s\S]*\(Sponsored\)[\s\S]*delivered {2}\(ok/,
    );
    const run = readRun();
    const command = /^ *(curl -sN .*)$/m.exec(one.output())?.[1] ?? "";
    // A curl of its own may have no ad in time. The demo has shown one.
    expect(await runCommand(command)).toMatch(/^data: [\s\S]*data: \[DONE\]/);
    const caller = relayCaller(run.gateway, run.apiKey);
    const id = await caller.injectUntilFilled();
    expect((await caller.acknowledgeUntilAccepted(id, "text", PATIENT)).status).toBe(200);
    one.child.kill("SIGTERM");
    expect(await one.exited).toBe(0);
    expect(Object.values(run.pids).filter(isAlive)).toEqual([]);
    expect(existsSync(join(home, "run.json"))).toBe(false);
  });

  test("a demo without an ad says why there is none", async (context) => {
    const { start } = await setup(context);
    const one = start([], { AD_SERVER_FAULTS: "start:500" });
    await running(one);
    expect(one.output()).toMatch(
      /The demo failed: 202 no_fill from the gateway, because the ad server failed: \S/,
    );
    expect(one.output()).toMatch(
      /The demo failed: no ad was put into the prompt \(200, X-Adrelay-Ad: fallback; \S/,
    );
  });

  test("data and keys outlive a restart", async (context) => {
    const { start, readRun } = await setup(context);
    const first = start(["--no-demo", ...NO_MODEL]);
    await running(first);
    expect(first.output()).not.toContain("Demo: one injection");
    const before = readRun();
    const id = await relayCaller(before.gateway, before.apiKey).injectUntilFilled();
    first.child.kill("SIGINT");
    expect(await first.exited).toBe(0);
    await running(start(["--no-demo", ...NO_MODEL]));
    const after = readRun();
    expect(after.apiKey).toBe(before.apiKey);
    const answer = await relayCaller(after.gateway, after.apiKey).acknowledgeUntilAccepted(
      id,
      "text",
      PATIENT,
    );
    expect(answer.status).toBe(200);
  });

  test("a killed process is restarted and reported, also Redis", async (context) => {
    const { start, readRun } = await setup(context);
    const one = start(["--no-demo"]);
    await running(one);
    for (const part of ["gateway", "worker", "proxy", "ad-server", "demo-model", "redis"]) {
      const pid = readRun().pids[part] ?? 0;
      process.kill(pid, "SIGKILL");
      await eventually(() => expect(readRun().pids[part]).not.toBe(pid), 60_000);
      await eventually(() => expect(one.output()).toContain(`${part} runs again`), 60_000);
    }
    const run = readRun();
    const caller = relayCaller(run.gateway, run.apiKey);
    await eventually(async () => {
      const { body } = await caller.inject();
      expect((await caller.acknowledge(body["ad_response_id"], "text")).status).toBe(200);
    }, 60_000);
  });

  test("an occupied port is reported with its part and its setting", async (context) => {
    const { ports, start } = await setup(context);
    const blocker = createServer();
    const occupied = Number(ports["PROXY_OPS_PORT"]);
    await new Promise<void>((resolve) => blocker.listen(occupied, "127.0.0.1", resolve));
    const one = start();
    expect(await one.exited).toBe(1);
    expect(one.output()).toContain(`port ${occupied} for the proxy's ops listener is in use`);
    expect(one.output()).toContain("PROXY_OPS_PORT");
    blocker.close();
  });

  test("faulty settings of all parts are reported together, before anything starts", async (context) => {
    const { start } = await setup(context);
    const faulty = {
      RETRY_SCHEDULE: "soon",
      ACK_WAIT_MS: "abc",
      AD_SERVER_FAULTS: "foo:bar",
      DEMO_MODEL_RECORDS: "-1",
      PROXY_IDLE_TIMEOUT_MS: "1ms",
      GATEWAY_PORT: "99999",
    };
    const one = start([], faulty);
    expect(await one.exited).toBe(1);
    for (const name of Object.keys(faulty)) {
      expect(one.output()).toMatch(new RegExp(`${name}(\\.0)?: `));
    }
    expect(one.output()).not.toContain("runs");
  });

  test("a part that can't start is reported, and all others are stopped", async (context) => {
    const { home, start } = await setup(context);
    const notDurable = await startTestRedis(["--appendonly", "no"]);
    const one = start(NO_MODEL, { REDIS_URL: notDurable.url });
    expect(await one.exited).toBe(1);
    expect(one.output()).toMatch(/ad-server ended \(exit 1\)[\s\S]*appendonly yes/);
    expect(existsSync(join(home, "run.json"))).toBe(false);
    await notDurable.dispose();
  });

  test("a REDIS_URL where nothing answers is reported before anything starts", async (context) => {
    const { start } = await setup(context);
    const one = start([], { REDIS_URL: `redis://127.0.0.1:${await freeLanePort()}` });
    expect(await one.exited).toBe(1);
    expect(one.output()).toContain("REDIS_URL: no Redis answers there");
  });

  test("with another ad service and other models' servers, only the relay runs, without a demo", async (context) => {
    const { start, readRun } = await setup(context);
    const provider = await startScriptedProvider();
    const one = start(NO_MODEL, { PROVIDER_URL: provider.url, PROVIDER_API_KEY: "our-key" });
    await running(one);
    expect(one.output()).toContain("No demo: PROVIDER_URL names another ad service");
    expect(one.output()).toContain("ad service   the one of PROVIDER_URL");
    expect(one.output()).not.toContain("ad-server runs");
    const run = readRun();
    expect([run.adServer, run.demoModel]).toEqual([undefined, undefined]);
    expect(Object.keys(run.pids)).toEqual(["start", "redis", "worker", "gateway", "proxy"]);
    await relayCaller(run.gateway, run.apiKey).injectUntilFilled();
    expect(provider.posts[0]?.headers["x-service-api-key"]).toBe("our-key");
    await provider.close();
  });

  test("a PROVIDER_URL that is the ad server's own address starts it, with the gateway's key", async (context) => {
    const { ports, start, readRun } = await setup(context);
    const address = `http://localhost:${ports["AD_SERVER_PORT"]}`;
    const one = start(NO_MODEL, { PROVIDER_URL: address, PROVIDER_API_KEY: OWN_KEY });
    await running(one);
    expect(one.output()).toContain("delivered  (ok");
    expect(await statusOfReport(readRun())).toBe(200);
  });

  test("the demos and the printed commands send the key where it is taken, and the gateway one of the ad server's", async (context) => {
    const { start, readRun } = await setup(context);
    const one = start([], {
      API_KEY_HEADERS: "Authorization",
      AD_SERVER_API_KEYS: ` ${OWN_KEY},key-of-another-one`,
    });
    await running(one);
    expect(one.output().match(/delivered {2}\(/g)).toHaveLength(2);
    expect(await statusOfReport(readRun())).toBe(200);
    const printed = /^ *(curl -s .*start.*)$/m.exec(one.output())?.[1] ?? "";
    expect(printed).toContain("-H 'Authorization: ");
    expect(JSON.parse(await runCommand(printed))).toHaveProperty("ad_response_id");
    const bearer = printed.replace("Authorization: ", "Authorization: Bearer ");
    expect(JSON.parse(await runCommand(bearer))).toHaveProperty("ad_response_id");
  });

  test("another model's server is called only if its URL is given as an option", async (context) => {
    const { start, readRun } = await setup(context);
    const model = await startModelServer();
    const inEnvironment = { OPENAI_BASE_URL: `${model.url}/env`, ANTHROPIC_BASE_URL: `${model.url}/env` };
    const one = start(["--model-url", `${model.url}/v1`], inEnvironment);
    await running(one);
    expect(one.output()).toContain("No demo of the proxy: --model-url names another model's server");
    expect(one.output()).toContain("ANTHROPIC_BASE_URL is set, but npm start uses its demo model;");
    expect(one.output()).not.toContain("OPENAI_BASE_URL is set");
    const { proxy, apiKey } = readRun();
    const call = async (headers: Record<string, string>) =>
      (await fetch(`${proxy}/v1/models`, { headers: { "X-Service-API-Key": apiKey, ...headers } })).text();
    expect(await call({ authorization: "Bearer k" })).toBe("of another server");
    expect(await call({ "anthropic-version": "2023-06-01", "x-api-key": "k" })).toContain("demo");
    expect(model.paths).toEqual(["/v1/models"]);
    await model.close();
  });

  test("two parts with the same port are reported", async (context) => {
    const { ports, start } = await setup(context);
    const one = start([], { GATEWAY_PORT: String(ports["WORKER_OPS_PORT"]) });
    expect(await one.exited).toBe(1);
    expect(one.output()).toContain("have the same port");
  });

  test("a stop while a Redis is fetched ends the download at once", async (context) => {
    const { home, start } = await setup(context);
    const pidFile = join(home, "pid-of-docker");
    const docker = `case $1 in info) echo 1.0;; image) exit 1;; *) echo $$ > ${pidFile}; exec sleep 600;; esac`;
    writeFileSync(join(home, "docker"), `#!/bin/sh\n${docker}\n`, { mode: 0o755 });
    const one = start([], { PATH: `${home}:${process.env["PATH"]}`, ADRELAY_REDIS_SERVER: "docker" });
    const pid = await pidIn(pidFile);
    one.child.kill("SIGTERM");
    expect(await one.exited).toBe(0);
    expect(isAlive(pid)).toBe(false);
    expect(one.output()).toMatch(/fetching the image \S+\n\nstopping\nstopped\n$/);
  });

  test("a stop while an app starts ends it at once, and leaves nothing behind", async (context) => {
    const { home, start } = await setup(context);
    const pidFile = join(home, "pid-of-gateway");
    // A gateway that never comes to listen.
    const hanging = `if (process.argv[1].includes("/gateway/")) {
      (await import("node:fs")).writeFileSync(process.env.PID_FILE, process.pid + "\\n");
      await new Promise(() => setInterval(() => {}, 1000));
    }`;
    writeFileSync(join(home, "hanging.mjs"), hanging);
    const one = start(RELAY_ALONE.args, {
      ...RELAY_ALONE.env,
      PID_FILE: pidFile,
      NODE_OPTIONS: `--import=${join(home, "hanging.mjs")}`,
    });
    const pid = await pidIn(pidFile);
    one.child.kill("SIGINT");
    expect(await one.exited).toBe(0);
    expect(isAlive(pid)).toBe(false);
    expect(one.output()).toMatch(/\nstopping\n[\s\S]*stopped\n$/);
    expect(one.output()).not.toContain("gateway runs");
    expect(existsSync(join(home, "run.json"))).toBe(false);
  });

  test("a second start in the same folder reports the first one, until its supervisor is killed and its parts end too", async (context) => {
    const { start, readRun } = await setup(context);
    const one = start(RELAY_ALONE.args, RELAY_ALONE.env);
    await running(one);
    const second = start();
    expect(await second.exited).toBe(1);
    expect(second.output()).toContain(`already runs in this folder (pid ${one.child.pid})`);
    expect(second.output()).toContain(`Stop it with: kill ${one.child.pid}\n`);
    const { pids } = readRun();
    one.child.kill("SIGKILL");
    await one.exited;
    await eventually(() => expect(Object.values(pids).filter(isAlive)).toEqual([]), 60_000);
    await running(start(RELAY_ALONE.args, RELAY_ALONE.env));
  });

  test("values of .env keep # and $ in quotes, and unknown names are told", async (context) => {
    const surroundings = await setup(context);
    const one = startWithEnvFile(
      surroundings,
      "API_KEYS='a#b$c-for-this-test'\r\nADMIN_TOKEN=\"t#1-for-this-test\" # the token\r\nCOLOUR=blue\r\n",
    );
    await running(one);
    expect(surroundings.readRun()).toMatchObject({
      apiKey: "a#b$c-for-this-test",
      adminToken: "t#1-for-this-test",
    });
    expect(one.output()).toContain(".env: Adrelay has no setting COLOUR\n");
  });

  test("a .env that other programs read differently is refused before anything starts", async (context) => {
    const surroundings = await setup(context);
    const one = startWithEnvFile(
      surroundings,
      "\uFEFFADMIN_TOKEN=sesame\nAPI_KEYS=sesame#1\nREDIS_URL=redis://:$sesame@h\n",
    );
    expect(await one.exited).toBe(1);
    expect(one.output()).toMatch(
      /\.env line 1: .*byte order mark.*\n\.env line 2, API_KEYS: .*\n\.env line 3, REDIS_URL: /,
    );
    expect(one.output()).not.toContain("sesame");
    expect(existsSync(join(surroundings.home, "run.json"))).toBe(false);
  });

  test.for([
    [["--port", "seventy"], "--port must be a whole number"],
    [["--model-url", "api.example/v1"], "--model-url must be a URL"],
    [["--bogus"], "--bogus"],
    [["extra"], "extra"],
  ] as const)("for the arguments %j it prints the usage and ends with 2", async ([args, words], context) => {
    const { start } = await setup(context);
    const one = start(args);
    expect(await one.exited).toBe(2);
    expect(one.output()).toContain(words);
    expect(one.output()).toContain("Usage: npm start");
  });
});
