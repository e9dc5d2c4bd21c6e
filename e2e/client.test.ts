/** The packed client against a real relay, on every runtime that it is for. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  codeBlocks,
  eventually,
  type RelayStack,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  TEST_API_KEY,
} from "@adrelay/testkit";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { installClient, linkSdks } from "./client/install-client.ts";
import { provideTools, type Runtime, runtimesIn, type Tools, workerdIn } from "./client/tools.ts";
import { startWorker } from "./client/workerd.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const THIS_NODE: Runtime = { title: `Node ${process.versions.node}`, program: process.execPath, args: [] };
const FETCH_TIMEOUT_MS = 600_000;
/** How many answers a program streams, and that each so many'th breaks off: after each of 0 to 10 chunks, in each of four ways. */
const ALL = { count: 1000, breakEvery: 10 };
/** Each of the 44 breaks once. */
const ELSEWHERE = { count: 88, breakEvery: 2 };

const tools: Tools = await provideTools();
const toolsFolder = tools.kind === "here" ? tools.folder : "";
const runtimes = [THIS_NODE, ...runtimesIn(toolsFolder)];

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
/** A project with the packed client. */
let project: string;

const run = promisify(execFile);

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), "adrelay-client-"));
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  stack = await startRelayStack({ redis, providerUrl: provider.url });
  await installClient(project);
  cpSync(join(ROOT, "e2e/client/programs"), project, { recursive: true });
}, FETCH_TIMEOUT_MS);
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
  rmSync(project, { recursive: true });
});

interface Answers {
  readonly shown: Readonly<Record<string, string>>;
  readonly left: number;
  readonly faults: readonly string[];
}

/** Every ad was acknowledged at the service once, with what its consumer was given. */
async function expectAllAcknowledged({ shown, left, faults }: Answers, count: number): Promise<void> {
  expect({ left, faults, count: Object.keys(shown).length }).toEqual({ left: 0, faults: [], count });
  await eventually(() => {
    const texts = Object.keys(shown).map((id) => provider.acknowledgmentsOf(id).map(textOf));
    expect(texts).toEqual(Object.values(shown).map((text) => [text]));
  }, 60_000);
}

const textOf = ({ fields }: { readonly fields: Record<string, unknown> }) => fields["llm_response"];

test.for(runtimes)(
  "on $title an answer is acknowledged once, as far as it was read",
  async (runtime, { skip }) => {
    if (!existsSync(runtime.program)) {
      skip(tools.kind === "here" ? "npm has none for this platform" : tools.why);
    }
    const { count, breakEvery } = runtime === THIS_NODE ? ALL : ELSEWHERE;
    const words = ["main.mjs", stack.gatewayUrl, TEST_API_KEY, String(count), String(breakEvery)];
    const options = { cwd: project, maxBuffer: 10_000_000 };
    const { stdout } = await run(runtime.program, [...runtime.args, ...words], options);
    await expectAllAcknowledged(JSON.parse(stdout), count);
    const required = await run(runtime.program, [...runtime.args, "require.cjs"], options);
    expect(required.stdout).toBe("function function function function\n");
  },
);

test("on an edge worker an answer is acknowledged once, as far as it was read", async ({ skip }) => {
  const workerd = workerdIn(toolsFolder);
  if (!existsSync(workerd)) {
    skip(tools.kind === "here" ? "npm has no workerd for this platform" : tools.why);
  }
  const { count, breakEvery } = ELSEWHERE;
  const programArgs = { count: String(count), breakEvery: String(breakEvery) };
  const bindings = { url: stack.gatewayUrl, apiKey: TEST_API_KEY, ...programArgs };
  const worker = await startWorker(workerd, project, bindings);
  try {
    const response = await fetch(worker.url);
    await expectAllAcknowledged(JSON.parse(await response.text()), count);
  } finally {
    await worker.stop();
  }
});

test("the quick start of the guide ends with an accepted acknowledgment", async () => {
  const [quickStart = ""] = codeBlocks("docs/client.md", "js");
  writeFileSync(join(project, "quick-start.mjs"), quickStart);
  const env = { PATH: process.env["PATH"], RELAY_URL: stack.gatewayUrl, RELAY_KEY: TEST_API_KEY };
  const { stdout } = await run(process.execPath, ["quick-start.mjs"], { cwd: project, env });
  expect(stdout).toContain("The model was asked: a prompt with an ad");
  const kinds = [...stdout.matchAll(/kind: '(\w+)'/g)].map(([, kind]) => kind);
  expect(kinds).toEqual(["injected", "accepted"]);
  const [, id = ""] = /adResponseId: '([0-9a-f-]+)'/.exec(stdout) ?? [];
  await eventually(() => {
    expect(provider.acknowledgmentsOf(id).map(textOf)).toEqual(["The model was asked: a prompt with an ad"]);
  });
});

test("a server with the guide's file outbox exits on SIGTERM", async () => {
  const code = codeBlocks("docs/client.md", "js").find((block) => block.includes("SIGTERM")) ?? "";
  const directory = join(project, "guide-outbox");
  const server = `import { createServer } from "node:http";
createServer().listen(0, "127.0.0.1", () => console.log("listening"));`;
  writeFileSync(
    join(project, "sigterm.mjs"),
    `${code.replace("/var/lib/chat/outbox", directory)}\n${server}`,
  );
  const env = { PATH: process.env["PATH"], RELAY_URL: stack.gatewayUrl, RELAY_KEY: TEST_API_KEY };
  const child = spawn(process.execPath, ["sigterm.mjs"], {
    cwd: project,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  child.kill("SIGTERM");
  expect(await once(child, "close")).toEqual([0, null]);
});

test("what a killed backend stored while the relay was down is sent by the next one", async () => {
  const directory = join(project, "outbox");
  const first = startBackend(directory, 200);
  await eventually(() => expect(first.events("all_injected")).toHaveLength(1));
  await stack.crash("gateway");
  first.child.stdin.write("go\n");
  await eventually(() => expect(first.events("stored").length).toBeGreaterThan(100));
  first.child.kill("SIGKILL");
  await first.ended;
  const stored = first.events("stored");
  expect(new Set(stored.map(({ outcome }) => outcome))).toEqual(new Set(["waiting"]));
  const second = startBackend(directory, 0);
  await eventually(() => expect(second.events("retrying").length).toBeGreaterThan(2));
  await stack.start("gateway");
  await eventually(() => {
    const texts = stored.map(({ id }) => provider.acknowledgmentsOf(String(id)).map(textOf));
    expect(texts).toEqual(stored.map(({ text }) => [text]));
  }, 60_000);
  second.child.stdin.end();
  await second.ended;
  expect(second.events("closed")).toEqual([{ kind: "closed", left: 0 }]);
  expect([...second.events("lost"), ...second.events("refused")]).toEqual([]);
  expect(readdirSync(directory)).toEqual([]);
});

function startBackend(directory: string, count: number) {
  const words = ["outbox.mjs", stack.gatewayUrl, TEST_API_KEY, directory, String(count)];
  const child = spawn(process.execPath, words, { cwd: project, stdio: ["pipe", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const events = (kind: string): Record<string, unknown>[] =>
    output
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line))
      .filter((event) => event.kind === kind);
  return { child, ended, events };
}

test("publint, arethetypeswrong and an older compiler find no fault in the package", async ({ skip }) => {
  if (tools.kind === "not_here") {
    skip(tools.why);
  }
  const bin = (name: string) => join(toolsFolder, "node_modules/.bin", name);
  const installed = join(project, "node_modules/@adrelay/client");
  await run(bin("publint"), ["--strict", installed]);
  const archive = readdirSync(project).find((name) => name.endsWith(".tgz")) ?? "";
  await run(bin("attw"), [join(project, archive), "--format", "ascii"]);
  const strict = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022"];
  const libs = ["--lib", "es2022,dom,dom.asynciterable"];
  linkSdks(project);
  for (const [module, resolution] of [
    ["node16", "node16"],
    ["esnext", "bundler"],
  ] as const) {
    const options = ["--module", module, "--moduleResolution", resolution, ...libs, ...strict];
    await run(bin("tsc"), [...options, "consumer.ts"], { cwd: project });
    // The AI SDK's own declarations don't hold under `exactOptionalPropertyTypes`.
    await run(bin("tsc"), [...options, "--skipLibCheck", "sdk-consumer.ts"], { cwd: project });
  }
});

test.each(["mts", "cts"])(
  "a compiler finds no fault in the declarations that an .%s imports",
  async (extension) => {
    linkSdks(project);
    const { exports } = JSON.parse(
      readFileSync(join(project, "node_modules/@adrelay/client/package.json"), "utf8"),
    );
    const paths = Object.keys(exports).filter((path) => !path.endsWith(".json"));
    const file = `declarations.${extension}`;
    writeFileSync(
      join(project, file),
      paths.map((path, at) => `export type * as _${at} from "@adrelay/client${path.slice(1)}";\n`).join(""),
    );
    const libs = ["--lib", "es2022,esnext.disposable,dom,dom.asynciterable"];
    const types = ["--types", "node", "--typeRoots", join(ROOT, "node_modules/@types")];
    const options = [
      "--ignoreConfig",
      "--module",
      "node16",
      "--strict",
      "--skipLibCheck",
      "false",
      ...libs,
      ...types,
    ];
    const tsc = join(ROOT, "node_modules/.bin/tsc");
    // The SDKs' declarations have faults of their own.
    const { stdout } = await run(tsc, ["--noEmit", ...options, file], { cwd: project }).catch(Object);
    expect(paths.length).toBeGreaterThan(3);
    const lines = String(stdout).split("\n");
    expect(lines.filter((line) => /@adrelay\/client|^declarations/.test(line))).toEqual([]);
  },
);

test.each([
  ["the client", "index", 6],
  ["the AI SDK's middleware", "ai-sdk/index", 2],
])("%s is small, minified and compressed", async (title, entry, limitKb) => {
  const { outputFiles } = await build({
    entryPoints: [join(project, `node_modules/@adrelay/client/dist/esm/${entry}.js`)],
    minify: true,
    write: false,
  });
  const bytes = gzipSync(outputFiles[0]?.contents ?? "", { level: 9 }).byteLength;
  console.log(`${title} has ${bytes} bytes, minified and compressed`);
  expect(bytes).toBeGreaterThan(1000);
  expect(bytes).toBeLessThanOrEqual(limitKb * 1024);
});
