/** The examples of docs/quick-start.md, run as they stand against `npm start`. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { freeLanePort } from "@adrelay/dev-servers";
import {
  acknowledged,
  codeBlocks,
  eventually,
  fetchMetrics,
  startScriptedProvider,
  sumOf,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { installClient } from "./client/install-client.ts";
import { providePython } from "./quick-start/python.ts";

const GUIDE = "docs/quick-start.md";
const ROOT = fileURLToPath(new URL("../", import.meta.url));
const SERVICE_KEY = "key-at-the-ad-service";
const START_TIMEOUT_MS = 240_000;
const run = promisify(execFile);

const python = await providePython();
const js = codeBlocks(GUIDE, "js");
const py = codeBlocks(GUIDE, "python");
const sh = codeBlocks(GUIDE, "sh");

/** The one block that has the words. */
function blockWith(blocks: readonly string[], words: string): string {
  const found = blocks.filter((block) => block.includes(words));
  expect(found, words).toHaveLength(1);
  return found[0] ?? "";
}

const runSchema = z.object({
  gateway: z.string(),
  gatewayOps: z.string(),
  adServer: z.string(),
  apiKey: z.string(),
});

let project: string;
let relayProcess: ChildProcess;
let relay: z.infer<typeof runSchema>;
let env: Record<string, string>;
/** How many acknowledgments the service should have by now. */
let wanted = 0;

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), "adrelay-quick-start-"));
  await Promise.all([installClient(project), startRelay()]);
  env = { PATH: process.env["PATH"] ?? "", RELAY_URL: relay.gateway, RELAY_KEY: relay.apiKey };
}, START_TIMEOUT_MS);
afterAll(async () => {
  relayProcess.kill("SIGTERM");
  await once(relayProcess, "close");
  rmSync(project, { recursive: true });
});

/** `npm start` with the settings that the guide gives it, on free ports. */
async function startRelay(): Promise<void> {
  const [, name = "", value = ""] = /^(API_KEY_HEADERS)=(\S+) npm start$/m.exec(sh.join("\n")) ?? [];
  const home = join(project, "home");
  mkdirSync(home);
  const names = [
    "GATEWAY_PORT",
    "GATEWAY_OPS_PORT",
    "WORKER_OPS_PORT",
    "PROXY_PORT",
    "PROXY_OPS_PORT",
    "DEMO_MODEL_PORT",
    "AD_SERVER_PORT",
    "AD_SERVER_OPS_PORT",
  ];
  const ports: Record<string, string> = {};
  for (const port of names) {
    ports[port] = String(await freeLanePort());
  }
  const settings = { [name]: value, PROVIDER_API_KEY: SERVICE_KEY, ADRELAY_HOME: home };
  relayProcess = spawn(process.execPath, [join(ROOT, "scripts/start.ts"), "--no-demo"], {
    env: { ...process.env, ...ports, ...settings },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const file = join(home, "run.json");
  await eventually(() => expect(existsSync(file)).toBe(true), START_TIMEOUT_MS / 2);
  relay = await eventually(() => runSchema.parse(JSON.parse(readFileSync(file, "utf8"))));
}

/** Since the last time so many acknowledgments were delivered, and no ad is left without one. */
async function expectDelivered(count: number): Promise<void> {
  wanted += count;
  await eventually(async () => {
    const samples = await fetchMetrics(relay.gatewayOps);
    const inState = (state: string) => sumOf(samples, "adrelay_acknowledgments", { state });
    expect({ delivered: inState("delivered"), awaiting: inState("awaiting") }).toEqual({
      delivered: wanted,
      awaiting: 0,
    });
  });
}

function save(name: string, text: string): string {
  const path = join(project, name);
  writeFileSync(path, text);
  return path;
}

async function runNode(
  name: string,
  text: string,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { stdout } = await run(process.execPath, [save(name, text)], {
    cwd: project,
    env: { ...env, ...more },
  });
  return stdout;
}

test("an empty project with the client gets an acknowledged answer", async () => {
  const output = await runNode("node.mjs", blockWith(js, "node-1"));
  expect(output).toMatch(/^Your model's answer to \d{3,} characters\nnot acknowledged yet: 0\n$/);
  await expectDelivered(1);
});

test("a server that streams acknowledges whole answers, those that the user left, and those that broke", async () => {
  const port = String(await freeLanePort());
  // A model that fails in the middle, if it is asked to.
  const code = blockWith(js, "stream-1").replace(
    "yield word;",
    'if (!prompt.includes("FAIL") || word !== "it ") { yield word; } else { throw new TypeError("the model broke off"); }',
  );
  const file = save("stream.mjs", code);
  const server = spawn(process.execPath, [file], { cwd: project, env: { ...env, PORT: port } });
  onTestFinished(() => void server.kill("SIGKILL"));
  await once(server.stdout, "data");
  const url = `http://127.0.0.1:${port}/?prompt=${encodeURIComponent("Which running shoes should I buy?")}`;
  const broken = await fetch(`${url}FAIL`);
  await expect(broken.text()).rejects.toThrow();
  await expectDelivered(1);
  const whole = await fetch(url);
  expect(await whole.text()).toBe("Take a light pair, and try it on first.");
  await expectDelivered(1);
  const leaving = new AbortController();
  const cut = await fetch(url, { signal: leaving.signal });
  await cut.body?.getReader().read();
  leaving.abort();
  await expectDelivered(1);
  server.kill("SIGTERM");
  expect(await once(server, "close")).toEqual([0, null]);
  expect(readdirSync(join(project, "outbox"))).toEqual([]);
});

test("a serverless function is kept alive until its answer is acknowledged", async () => {
  const file = save("edge.mjs", blockWith(js, "edge-1"));
  const { default: worker } = await import(pathToFileURL(file).href);
  const kept: Promise<unknown>[] = [];
  const context = { waitUntil: (promise: Promise<unknown>) => kept.push(promise) };
  const request = new Request("http://chat", { method: "POST", body: "Which running shoes should I buy?" });
  const response: Response = await worker.fetch(request, env, context);
  expect(await response.text()).toMatch(/^An answer to \d{3,} characters$/);
  expect(kept.length).toBeGreaterThan(0);
  await Promise.all(kept);
  await expectDelivered(1);
});

const CONTEXT = `{"session_id": "httpx-1", "user_agent": "Mozilla/5.0", "user_ip": "203.0.113.7"}`;
const QUESTION = `"Which running shoes should I buy for my first marathon?"`;

/** Starts Python with the first two examples as its module `chat`. */
function startPython(packages: string, program: string, more: Readonly<Record<string, string>> = {}) {
  const chat = `${blockWith(py, "def with_ad")}\n\n${blockWith(py, "def stream_answer")}`;
  save("chat.py", chat);
  // The same, with waits so short that a test has no need to wait for them.
  save("chat_in_a_hurry.py", chat.replace("read_text()), 1", "read_text()), 0.001"));
  const outbox = join(project, "python-outbox");
  return spawn("python3", ["-c", program], {
    cwd: project,
    env: { ...env, PYTHONPATH: packages, OUTBOX: outbox, ...more },
    stdio: ["ignore", "pipe", "inherit"],
  });
}

async function runPython(
  packages: string,
  program: string,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const child = startPython(packages, program, more);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  return output.trim();
}

test("Python with httpx acknowledges what was read, and after a kill what was stored", async ({ skip }) => {
  if (python.kind === "not_here") {
    return skip(python.why);
  }
  const { packages } = python;
  const model = `ask_model = lambda prompt: iter(["Take ", str(len(prompt) > 200), ", the rest"])`;
  const streamed = `import chat\n${model}
for text in chat.stream_answer(${QUESTION}, ${CONTEXT}, ask_model): print(text, end="")
stream = chat.stream_answer(${QUESTION}, ${CONTEXT}, ask_model)
next(stream)
stream.close()`;
  expect(await runPython(packages, streamed)).toBe("Take True, the rest");
  await expectDelivered(2);

  const id = await runPython(packages, `import chat\nprint(chat.with_ad(${QUESTION}, ${CONTEXT})[1])`);
  const away = { RELAY_URL: `http://127.0.0.1:${await freeLanePort()}` };
  const failing = startPython(packages, `import chat\nchat.acknowledge("${id}", "the text")`, away);
  const outbox = join(project, "python-outbox");
  await eventually(() => expect(readdirSync(outbox)).toEqual([`${id}.json`]));
  failing.kill("SIGKILL");
  await once(failing, "close");
  await runPython(packages, "import chat\nchat.send_left_over()");
  expect(readdirSync(outbox)).toEqual([]);
  await expectDelivered(1);
});

test("only the relay's own answers end an acknowledgment of Python with httpx", async ({ skip }) => {
  if (python.kind === "not_here") {
    return skip(python.why);
  }
  const peer = await startScriptedProvider();
  onTestFinished(() => peer.close());
  const statuses = [404, 403, 200];
  peer.onAcknowledge((_post, count) => {
    const status = statuses[count];
    return status === undefined
      ? { ...acknowledged(), status: 201 }
      : { kind: "raw", status, bytes: "<html>a page of a proxy" };
  });
  const id = randomUUID();
  const program = `import chat_in_a_hurry\nchat_in_a_hurry.acknowledge("${id}", "the text")`;
  await runPython(python.packages, program, { RELAY_URL: peer.url });
  expect(peer.acknowledgmentsOf(id)).toHaveLength(4);
  expect(readdirSync(join(project, "python-outbox"))).toEqual([]);
});

test.for([
  ["requests", "requests-1"],
  ["an SDK with another header for its key", "sdk-1"],
] as const)("Python with %s makes both calls", async ([, words], { skip }) => {
  if (python.kind === "not_here") {
    return skip(python.why);
  }
  expect(["ok", "no_ad_used"]).toContain(await runPython(python.packages, blockWith(py, words)));
  await expectDelivered(1);
});

test("curl makes both calls and sees the acknowledgment delivered", async () => {
  const curl = async (block: string, more: Readonly<Record<string, string>> = {}) =>
    (await run("sh", ["-c", block], { env: { ...env, ...more } })).stdout;
  const start = JSON.parse(await curl(blockWith(sh, "curl-1")));
  expect(start).toMatchObject({ status: "ok", success: true });
  const output = await curl(blockWith(sh, "$AD_RESPONSE_ID"), { AD_RESPONSE_ID: start.ad_response_id });
  expect(output).toMatch(/"status":"no_ad_used".*"state":"delivered"/s);
  await expectDelivered(1);
});

test("a program that calls the service directly needs only another address and key", async () => {
  const program = blockWith(js, "direct-1");
  const direct = await runNode("direct.mjs", program, { ADS_URL: relay.adServer, ADS_KEY: SERVICE_KEY });
  await expectDelivered(0);
  const relayed = await runNode("direct.mjs", program, { ADS_URL: relay.gateway, ADS_KEY: relay.apiKey });
  expect([direct, relayed]).toEqual(["ok\n", "ok\n"]);
  await expectDelivered(1);
});
