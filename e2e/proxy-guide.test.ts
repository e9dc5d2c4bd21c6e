/** docs/proxy.md, done as it says: its examples run against `npm start`, and its nginx is a real one. */
import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freeLanePort } from "@adrelay/dev-servers";
import { codeBlocks, eventually, fetchMetrics, sumOf } from "@adrelay/testkit";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { AD_REASONS } from "../apps/proxy/src/proxy-metrics.ts";

const GUIDE = "docs/proxy.md";
const ROOT = fileURLToPath(new URL("../", import.meta.url));
const START_TIMEOUT_MS = 240_000;
const SDKS = ["openai", "@anthropic-ai/sdk"];
const run = promisify(execFile);
const runSchema = z.object({ proxy: z.string(), gatewayOps: z.string(), apiKey: z.string() });

let project: string;
let relayProcess: ChildProcess;
let relay: z.infer<typeof runSchema>;
let env: Record<string, string>;

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), "adrelay-proxy-guide-"));
  writeFileSync(join(project, "package.json"), '{ "type": "module" }');
  mkdirSync(join(project, "node_modules", "@anthropic-ai"), { recursive: true });
  for (const sdk of SDKS) {
    symlinkSync(join(ROOT, "apps/proxy/node_modules", sdk), join(project, "node_modules", sdk));
  }
  await startRelay();
  env = {
    PATH: process.env["PATH"] ?? "",
    PROXY_URL: relay.proxy,
    RELAY_KEY: relay.apiKey,
    MODEL_KEY: "any-key",
  };
}, START_TIMEOUT_MS);
afterAll(async () => {
  relayProcess.kill("SIGTERM");
  await once(relayProcess, "close");
  rmSync(project, { recursive: true });
});

/** `npm start` on free ports. The ad has more time than elsewhere, because other tests run beside this one. */
async function startRelay(): Promise<void> {
  const names = [
    "GATEWAY",
    "GATEWAY_OPS",
    "WORKER_OPS",
    "PROXY",
    "PROXY_OPS",
    "AD_SERVER",
    "AD_SERVER_OPS",
    "DEMO_MODEL",
  ];
  const settings: Record<string, string> = {
    PROXY_INJECTION_TIMEOUT_MS: "10000",
    ADRELAY_HOME: join(project, "home"),
  };
  for (const name of names) {
    settings[`${name}_PORT`] = String(await freeLanePort());
  }
  relayProcess = spawn(process.execPath, [join(ROOT, "scripts/start.ts"), "--no-demo"], {
    env: { ...process.env, ...settings },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const file = join(project, "home", "run.json");
  await eventually(() => expect(existsSync(file)).toBe(true), START_TIMEOUT_MS / 2);
  relay = await eventually(() => runSchema.parse(JSON.parse(readFileSync(file, "utf8"))));
}

/** How many acknowledgments the ad server has taken as right. */
async function countDelivered(): Promise<number> {
  const samples = await fetchMetrics(relay.gatewayOps);
  return sumOf(samples, "adrelay_acknowledgments_delivered_total", { status: "ok" });
}

/** Runs an example, and waits until the ad in its answer is acknowledged. */
async function runExample(file: string, args: readonly string[]): Promise<string> {
  const before = await countDelivered();
  const { stdout } = await run(file, [...args], { cwd: project, env, timeout: 60_000 });
  await eventually(async () => expect(await countDelivered()).toBe(before + 1), 30_000);
  return stdout;
}

const block = (language: string, words: string) =>
  codeBlocks(GUIDE, language).find((text) => text.includes(words)) ?? "";

test("the example for curl streams an answer with an ad, which is acknowledged", async () => {
  const output = await runExample("sh", ["-c", block("sh", "curl -sN")]);
  expect(output).toMatch(/\(Sponsored\)[\s\S]*data: \[DONE\]/);
});

test.each(["openai", "@anthropic-ai/sdk"])(
  "the example for %s prints an answer, and its ad is acknowledged",
  async (sdk) => {
    const file = join(project, `${sdk.replace("/", "-")}.mjs`);
    writeFileSync(file, block("js", `from "${sdk}"`));
    expect(await runExample(process.execPath, [file])).toMatch(/^Start with[\s\S]*\(Sponsored\)/);
  },
);

test("the examples for Python are right Python", ({ skip }) => {
  const check = "import sys; compile(sys.stdin.read(), 'guide', 'exec')";
  for (const input of codeBlocks(GUIDE, "python")) {
    const { error, status } = spawnSync("python3", ["-c", check], { input });
    if (error !== undefined) {
      return skip("no Python");
    }
    expect(status).toBe(0);
  }
});

test("the guide has each reason of the code, and no other", () => {
  const guide = readFileSync(join(ROOT, GUIDE), "utf8");
  const [, skipped = "", fallback = ""] = guide.split(/^`(?:skipped|fallback)` is .*:$/m);
  const named = (part: string) =>
    [...part.matchAll(/^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|/gm)].flatMap(([, cell = ""]) =>
      cell.split(", ").map((word) => word.replaceAll("`", "")),
    );
  const ofCode = (state: "skipped" | "fallback") => AD_REASONS[state].filter((reason) => reason !== "other");
  expect(named(skipped).sort()).toEqual([...ofCode("skipped")].sort());
  expect(named(fallback.split("\n## ")[0] ?? "").sort()).toEqual([...ofCode("fallback")].sort());
});

const HOST = "models.example";
/** Not a dependency: without it the test is skipped. */
const NGINX: string = "nginx";
const hasNginx = spawnSync(NGINX, ["-v"], { stdio: "ignore" }).error === undefined;

interface Nginx {
  readonly port: number;
  readonly certificate: string;
}

/** Starts an nginx with the guide's example. The second of its two proxies is stopped. */
async function startNginx(): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-proxy-nginx-"));
  const subject = ["-subj", `/CN=${HOST}`, "-addext", `subjectAltName=DNS:${HOST}`];
  const files = ["-keyout", `${folder}/${HOST}-key.pem`, "-out", `${folder}/${HOST}.pem`];
  const key = ["-newkey", "rsa:2048", "-nodes", "-days", "1"];
  execFileSync("openssl", ["req", "-x509", ...key, ...subject, ...files], { stdio: "ignore" });
  const [port, stopped] = [await freeLanePort(), await freeLanePort()];
  const { host } = new URL(relay.proxy);
  const example = block("nginx", "proxy_buffering")
    .replace("10.0.0.11:8083", host)
    .replace("10.0.0.12:8083", `127.0.0.1:${stopped}`)
    .replaceAll("/etc/nginx/", `${folder}/`)
    .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  );
  writeFileSync(
    `${folder}/nginx.conf`,
    `user root; daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr; events {}
    http { access_log off; ${temporary.join(" ")} ${example} }`,
  );
  const nginx = spawn(NGINX, ["-p", folder, "-c", `${folder}/nginx.conf`], { stdio: "inherit" });
  onTestFinished(async () => {
    nginx.kill("SIGTERM");
    await once(nginx, "close");
    rmSync(folder, { recursive: true });
  });
  await eventually(() => expect(existsSync(`${folder}/nginx.pid`)).toBe(true));
  return { port, certificate: readFileSync(`${folder}/${HOST}.pem`, "utf8") };
}

/** Calls a model through nginx. */
async function callThrough({ port, certificate }: Nginx, fault: Readonly<Record<string, string>> = {}) {
  const sent = request({
    host: "127.0.0.1",
    port,
    path: "/v1/chat/completions",
    method: "POST",
    servername: HOST,
    ca: certificate,
    agent: false,
    headers: {
      Host: HOST,
      "X-Service-API-Key": relay.apiKey,
      Authorization: "Bearer any-key",
      "Content-Type": "application/json",
      ...fault,
    },
  });
  sent.end(JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "hello" }] }));
  const [response] = await once(sent, "response");
  return { sent, response };
}

test.skipIf(!hasNginx)("nginx passes an event on while the model stands still", async () => {
  const { sent, response } = await callThrough(await startNginx(), {
    "X-Demo-Fault": "events=9;size=4, stall-after=2",
  });
  expect(response.headers["x-adrelay-ad"]).toBe("skipped; reason=no_context");
  // The model sends nothing more. What comes now has waited for nothing.
  let text = "";
  response.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  await eventually(() => expect(text.match(/^data: /gm)).toHaveLength(2));
  sent.destroy();
});

test.skipIf(!hasNginx)("behind nginx, a proxy that is stopped costs no call", async () => {
  const nginx = await startNginx();
  const statuses: number[] = [];
  for (let call = 0; call < 20; call += 1) {
    const { response } = await callThrough(nginx);
    statuses.push(response.statusCode);
    response.resume();
  }
  expect(statuses).toEqual(Array(20).fill(200));
});
