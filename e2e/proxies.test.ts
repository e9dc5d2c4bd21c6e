/** The examples of docs/behind-a-proxy.md, run by real proxies before two real gateways. Without a proxy they are skipped. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { ACKNOWLEDGE_PATH, API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import { freeLanePort, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  codeBlocks,
  eventually,
  filled,
  type RelayStack,
  type ScriptedProvider,
  type SocketProxy,
  startApp,
  startRelayStack,
  startScriptedProvider,
  startSocketProxy,
  TEST_API_KEY,
  TEST_INJECTION,
} from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

const HOST = "ads-relay.example";
const folder = mkdtempSync(join(tmpdir(), "adrelay-proxies-"));

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
/** The second gateway's way to Redis, which can be cut. */
let wayToRedis: SocketProxy;
let second: AppProcess;
let certificate: string;

beforeAll(async () => {
  const subject = ["-subj", `/CN=${HOST}`, "-addext", `subjectAltName=DNS:${HOST}`];
  const files = ["-keyout", `${folder}/${HOST}-key.pem`, "-out", `${folder}/${HOST}.pem`];
  const key = ["-newkey", "rsa:2048", "-nodes", "-days", "1"];
  execFileSync("openssl", ["req", "-x509", ...key, ...subject, ...files], { stdio: "ignore" });
  certificate = readFileSync(`${folder}/${HOST}.pem`, "utf8");
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  wayToRedis = await startSocketProxy(Number(new URL(redis.url).port));
  stack = await startRelayStack({ redis, providerUrl: provider.url, env: { INJECTION_TIMEOUT_MS: "2000" } });
});
afterAll(async () => {
  await Promise.all([stack.stop(), provider.close()]);
  await wayToRedis.close();
  await redis.dispose();
  rmSync(folder, { recursive: true });
});

const SECOND_HOST = "127.0.0.2";
/** By this key the provider knows the second gateway's calls. */
const SECOND_KEY = "key-of-the-second-gateway";

/** A gateway on the ports of the stack's one, but on another address, as if on another machine. */
function startSecondGateway(): Promise<AppProcess> {
  const url = new URL(redis.url);
  url.port = String(wayToRedis.port);
  return startApp("gateway", {
    REDIS_URL: url.href,
    PROVIDER_URL: provider.url,
    PROVIDER_API_KEY: SECOND_KEY,
    API_KEYS: TEST_API_KEY,
    GATEWAY_HOST: SECOND_HOST,
    GATEWAY_PORT: new URL(stack.gatewayUrl).port,
    GATEWAY_OPS_HOST: SECOND_HOST,
    GATEWAY_OPS_PORT: new URL(stack.gatewayOpsUrl).port,
  });
}

const readinessOfSecond = async () =>
  (await fetch(`http://${SECOND_HOST}:${new URL(stack.gatewayOpsUrl).port}/readyz`)).status;
const postsOfSecond = () =>
  provider.posts.filter(({ headers }) => headers[API_KEY_HEADER.toLowerCase()] === SECOND_KEY);

/** The document's example for this proxy, with the addresses of this test. */
function configure(language: "nginx" | "caddyfile", port: number): string {
  const [example = ""] = codeBlocks("docs/behind-a-proxy.md", language);
  const changes: [string | RegExp, string][] = [
    [/10\.0\.0\.11:8080/g, new URL(stack.gatewayUrl).host],
    [/10\.0\.0\.12:8080/g, `${SECOND_HOST}:${new URL(stack.gatewayUrl).port}`],
    [/\/etc\/(nginx|caddy)\//g, `${folder}/`],
    ["listen 443 ssl", `listen 127.0.0.1:${port} ssl`],
    [`\n${HOST} {`, `\n${HOST}:${port} {`],
    ["health_port 8081", `health_port ${new URL(stack.gatewayOpsUrl).port}`],
  ];
  return changes.reduce((text, [from, to]) => text.replace(from, to), `\n${example}`);
}

const NGINX_TEMPORARY = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
  .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
  .join(" ");

const PROXIES = [
  {
    program: "nginx",
    write: (port: number) =>
      `user root; daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr; events {}
      http { access_log off; ${NGINX_TEMPORARY} ${configure("nginx", port)} }`,
    args: (file: string) => ["-p", folder, "-c", file],
  },
  {
    program: "caddy",
    write: (port: number) =>
      configure("caddyfile", port).replace("{", "{\n  admin off\n  auto_https disable_redirects"),
    args: (file: string) => ["run", "--adapter", "caddyfile", "--config", file],
  },
] as const;

const isInstalled = (program: string) => spawnSync(program, ["-v"], { stdio: "ignore" }).error === undefined;

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Calls the proxy by its name, on 127.0.0.1, with its certificate checked. */
async function call(port: number, path: string, fields: unknown): Promise<Reply> {
  const headers = { Host: HOST, [API_KEY_HEADER]: TEST_API_KEY, "Content-Type": "application/json" };
  const options = { port, path, headers, method: "POST", servername: HOST, ca: certificate, agent: false };
  const sent = request({ host: "127.0.0.1", ...options });
  sent.end(JSON.stringify(fields));
  const [response] = await once(sent, "response");
  const body = await text(response);
  const parsed = response.headers["content-type"]?.includes("json") === true ? JSON.parse(body) : {};
  return { status: response.statusCode, headers: response.headers, body: parsed };
}

describe.each(PROXIES)("behind $program", ({ program, write, args }) => {
  // If all tests are skipped, the hooks are skipped, too.
  const run = test.skipIf(!isInstalled(program));
  let proxy: ChildProcess;
  let port: number;
  let log = "";

  beforeAll(async () => {
    second = await startSecondGateway();
    port = await freeLanePort();
    const file = join(folder, `${program}.conf`);
    writeFileSync(file, write(port));
    const env = { PATH: process.env["PATH"], HOME: folder };
    proxy = spawn(program, args(file), { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const output of [proxy.stdout, proxy.stderr]) {
      output?.setEncoding("utf8").on("data", (text: string) => {
        log += text;
      });
    }
    await eventually(async () => expect((await inject()).status).toBe(200));
  });
  afterAll(async () => {
    proxy.kill("SIGTERM");
    await Promise.all([once(proxy, "exit"), second.stop()]);
  });
  beforeEach(() => {
    provider.posts.length = 0;
    provider.onStart(() => filled());
  });

  const inject = () => call(port, INJECTION_PATH, TEST_INJECTION);
  const acknowledge = (id: unknown) =>
    call(port, ACKNOWLEDGE_PATH, { ad_response_id: id, llm_response: "x".repeat(100_000) });

  run("injections and acknowledgments pass over TLS, each once", async () => {
    const injected = await Promise.all(Array.from({ length: 10 }, inject));
    const answers = await Promise.all(injected.map(({ body }) => acknowledge(body["ad_response_id"])));
    expect(injected.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(answers[0]?.headers).toMatchObject({
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    });
    const posts = (operation: string) => provider.posts.filter((post) => post.operation === operation);
    expect(posts("start")).toHaveLength(10);
    expect(posts("acknowledge")).toHaveLength(10);
  });

  run("an error of a gateway passes with its code", async () => {
    const answer = await call(port, ACKNOWLEDGE_PATH, { ad_response_id: "no id", llm_response: "x" });
    expect(answer).toMatchObject({ status: 422, body: { code: "validation_failed" } });
  });

  run("acknowledgments find the gateway that has Redis", async () => {
    const ids = await Promise.all(
      Array.from({ length: 10 }, async () => (await inject()).body["ad_response_id"]),
    );
    wayToRedis.setTarget(9);
    wayToRedis.cut();
    await eventually(async () => expect(await readinessOfSecond()).toBe(503));
    await eventually(async () => {
      const statuses = [];
      for (const id of ids) {
        statuses.push((await acknowledge(id)).status);
      }
      expect(statuses).toEqual(Array(10).fill(200));
    });
    // For injections, the gateway without Redis is as good as the other one.
    provider.posts.length = 0;
    for (let at = 0; at < 10; at += 1) {
      expect((await inject()).status).toBe(200);
    }
    expect(postsOfSecond()).not.toEqual([]);
    wayToRedis.setTarget(Number(new URL(redis.url).port));
  });

  run("an injection that was sent to a gateway that dies is not repeated", async () => {
    await eventually(async () => {
      await inject();
      expect(postsOfSecond()).not.toEqual([]);
    });
    provider.posts.length = 0;
    provider.onStart(() => ({ kind: "hang" }));
    const running = [inject(), inject()];
    await eventually(() => expect(provider.posts).toHaveLength(2));
    expect(postsOfSecond()).toHaveLength(1);
    second.kill("SIGKILL");
    const statuses = (await Promise.all(running)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([202, 502]);
    expect(provider.posts).toHaveLength(2);
    // The proxy logs the failure, without the caller's key.
    await eventually(() => expect(log).toContain(INJECTION_PATH));
    expect(log).not.toContain(TEST_API_KEY);
  });

  run("a gateway that is gone costs no injection", async () => {
    await second.exited;
    const statuses = [];
    for (let at = 0; at < 10; at += 1) {
      statuses.push((await inject()).status);
    }
    expect(statuses).toEqual(Array(10).fill(200));
    expect(provider.posts).toHaveLength(10);
  });
});
