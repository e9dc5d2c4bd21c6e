/** Who may use the ops listeners: guessed tokens, foreign host names, proxies, metrics with a token. */
import { type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  eventually,
  parseMetrics,
  type RelayStack,
  startAdrelay,
  startApp,
  startRelayStack,
  sumOf,
  TEST_ADMIN_TOKEN,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";

const METRICS_TOKEN = "token-of-a-prometheus";
/** Each test that guesses has an address of its own. */
const [GUESSER, VICTIM, PROXY, SCRAPER] = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"] as const;

let redis: TestRedis;
let stack: RelayStack;
let adServer: AppProcess;
let adServerOpsUrl: string;

beforeAll(async () => {
  redis = await startTestRedis();
  const env = {
    METRICS_TOKEN,
    OPS_HOSTS: "relay.example,worker",
    OPS_TRUSTED_PROXIES: `${PROXY}, 10.0.0.0/8`,
  };
  stack = await startRelayStack({ redis, providerUrl: "http://127.0.0.1:9", env });
  adServer = await startApp("ad-server", {
    REDIS_URL: redis.url,
    AD_SERVER_API_KEYS: "key-for-this-test",
    AD_SERVER_PORT: "0",
    METRICS_TOKEN,
  });
  adServerOpsUrl = `http://127.0.0.1:${adServer.listening["ops_port"]}`;
});
afterAll(async () => {
  await Promise.all([stack.stop(), adServer.stop()]);
  await redis.dispose();
});

interface Asked {
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly from?: string;
}

/** `fetch` can neither set a Host nor choose the address that it calls from. */
async function ask(url: string, { path = "/admin/v1/stats", headers = {}, from = "127.0.0.1" }: Asked) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(`${url}${path}`, { headers, localAddress: from }, resolve).once("error", reject).end();
  });
  const body = await text(response);
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const codeOf = (body: string) => z.looseObject({ code: z.string() }).parse(JSON.parse(body)).code;

test("of 2,000 guesses from one address fewer than 20 are looked at in a minute", async () => {
  const startedAtMs = performance.now();
  const codes: string[] = [];
  for (let round = 0; round < 40; round += 1) {
    const guesses = Array.from({ length: 50 }, (_, at) => `a-guess-of-many-${round}-${at}`);
    const answers = await Promise.all(
      guesses.map((token) => ask(stack.gatewayOpsUrl, { headers: bearer(token), from: GUESSER })),
    );
    codes.push(...answers.map(({ body }) => codeOf(body)));
  }
  const seconds = (performance.now() - startedAtMs) / 1000;
  const tried = codes.filter((code) => code === "unauthenticated").length;
  expect(tried).toBeGreaterThanOrEqual(5);
  expect(tried).toBeLessThanOrEqual(5 + Math.ceil(seconds / 6));
  expect(codes.filter((code) => code === "too_many_logins")).toHaveLength(2000 - tried);
  const next = await ask(stack.gatewayOpsUrl, { headers: bearer(TEST_ADMIN_TOKEN), from: GUESSER });
  expect(next.status).toBe(429);
  expect(Number(next.headers["retry-after"])).toBeGreaterThan(0);
  expect(Number(next.headers["retry-after"])).toBeLessThanOrEqual(6);
  const elsewhere = await ask(stack.gatewayOpsUrl, { headers: bearer(TEST_ADMIN_TOKEN), from: VICTIM });
  expect(elsewhere.status).toBe(200);
  const logged = () => stack.apps.get("gateway")?.logs.filter(({ address }) => address === GUESSER) ?? [];
  await eventually(() => expect(logged()).toHaveLength(tried));
  const ours = logged();
  expect(ours[4]).toMatchObject({ level: "warn", event: "login_refused", endpoint: "admin", slowed: true });
  expect(JSON.stringify(ours)).not.toContain("a-guess");
  const metrics = await scrape(stack.gatewayOpsUrl);
  const counted = (reason: string) =>
    sumOf(metrics, "adrelay_logins_refused_total", { endpoint: "admin", reason });
  expect({ unknown: counted("unknown"), slowed: counted("slowed") }).toEqual({
    unknown: tried,
    slowed: 2001 - tried,
  });
});

async function scrape(url: string) {
  const { status, body } = await ask(url, {
    path: "/metrics",
    headers: bearer(METRICS_TOKEN),
    from: SCRAPER,
  });
  expect(status).toBe(200);
  return parseMetrics(body);
}

test("an X-Forwarded-For counts only from a trusted proxy", async () => {
  const guess = async (from: string, forwardedFor: string) => {
    const headers = { ...bearer("a-guess-of-a-token"), "X-Forwarded-For": forwardedFor };
    return (await ask(stack.gatewayOpsUrl, { headers, from })).status;
  };
  const untrusted = [];
  const trusted = [];
  for (let at = 1; at <= 6; at += 1) {
    untrusted.push(await guess("127.0.0.6", `198.51.100.${at}`));
    // What a caller writes in front of the proxy's own entry isn't believed.
    trusted.push(await guess(PROXY, `198.51.100.${at}, 203.0.113.7`));
  }
  expect([untrusted.at(-1), trusted.at(-1)]).toEqual([429, 429]);
  const other = { ...bearer(TEST_ADMIN_TOKEN), "X-Forwarded-For": "203.0.113.8" };
  expect((await ask(stack.gatewayOpsUrl, { headers: other, from: PROXY })).status).toBe(200);
});

test.each([
  ["attacker.example", 421],
  ["attacker.example:8081", 421],
  ["127.0.0.1.attacker.example", 421],
  ["[attacker]", 421],
  ["localhost:8081", 200],
  ["LOCALHOST.", 200],
  ["192.0.2.1:8082", 200],
  ["[2001:db8::1]:8082", 200],
  ["relay.example", 200],
  ["worker:8082", 200],
])("a request for the host %j gets %d from both ops listeners of the relay", async (host, status) => {
  for (const url of [stack.gatewayOpsUrl, stack.workerOpsUrl]) {
    const answer = await ask(url, { path: "/healthz", headers: { Host: host } });
    expect(answer.status).toBe(status);
    expect(status === 200 || codeOf(answer.body) === "host_not_allowed").toBe(true);
  }
  const admin = await ask(stack.gatewayOpsUrl, { headers: { ...bearer(TEST_ADMIN_TOKEN), Host: host } });
  expect(admin.status).toBe(status);
});

test.each([
  ["HTTP/1.1", 400],
  ["HTTP/1.0", 200],
])("a request of %s without a Host gets %d", async (version, status) => {
  for (const url of [stack.gatewayOpsUrl, adServerOpsUrl]) {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.end(`GET /healthz ${version}\r\n\r\n`);
    const answer = await text(socket);
    expect(answer).toContain(`HTTP/1.1 ${status} `);
    expect(status === 200 || answer.includes('"code":"bad_request"')).toBe(true);
  }
});

const MALFORMED = "GET /healthz HTTP/1.1\r\nHost: a\r\nNo colon\r\n\r\n";

test.each([
  ["a request", "GET /healthz HTTP/1.0\r\n\r\n"],
  ["a scrape", `GET /metrics HTTP/1.0\r\nAuthorization: Bearer ${METRICS_TOKEN}\r\n\r\n`],
  ["an injection without a key", "POST /api/ad-injection/start/ HTTP/1.0\r\n\r\n"],
  ["an unknown path", "GET /nothing HTTP/1.0\r\n\r\n"],
  ["a request without a Host", "GET /healthz HTTP/1.1\r\n\r\n"],
  ["what isn't HTTP", MALFORMED],
])("no listener's answer to %s may be cached, guessed at, or names software", async (_what, bytes) => {
  const adServerUrl = `http://127.0.0.1:${adServer.listening["port"]}`;
  const relayUrls = [stack.gatewayUrl, stack.gatewayOpsUrl, stack.workerOpsUrl];
  for (const url of [...relayUrls, adServerUrl, adServerOpsUrl]) {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write(bytes);
    const [head = ""] = (await text(socket)).split("\r\n\r\n");
    const names = head.split("\r\n").map((line) => line.split(":")[0]?.toLowerCase());
    expect(head).toMatch(/^HTTP\/1\.1 \d{3} /);
    expect(head).toContain("\r\nCache-Control: no-store\r\n");
    expect(head).toContain("\r\nX-Content-Type-Options: nosniff\r\n");
    expect(names.filter((name) => name === "x-powered-by" || name === "server" || name === "etag")).toEqual(
      [],
    );
  }
});

test("metrics need their token, and readiness needs none", async () => {
  for (const url of [stack.gatewayOpsUrl, stack.workerOpsUrl, adServerOpsUrl]) {
    const without = await ask(url, { path: "/metrics", from: SCRAPER });
    expect([without.status, codeOf(without.body)]).toEqual([401, "unauthenticated"]);
    expect((await ask(url, { path: "/readyz" })).status).toBe(200);
    await scrape(url);
    const wrong = await ask(url, { path: "/metrics", headers: bearer(TEST_ADMIN_TOKEN), from: SCRAPER });
    expect(wrong.status).toBe(401);
  }
});

test("the ad server's metrics and health are not on its public port", async () => {
  const metrics = await scrape(adServerOpsUrl);
  expect(metrics.has("adserver_spend_micros_total")).toBe(true);
  for (const path of ["/metrics", "/healthz", "/readyz"]) {
    const answer = await ask(`http://127.0.0.1:${adServer.listening["port"]}`, { path });
    expect(answer.status).toBe(404);
  }
});

test("the command says that its address has to wait, and why", async () => {
  for (let at = 0; at < 5; at += 1) {
    await ask(stack.gatewayOpsUrl, { headers: bearer(`another-guess-${at}`) });
  }
  const env = { ADRELAY_URL: stack.gatewayOpsUrl, ADRELAY_ADMIN_TOKEN: TEST_ADMIN_TOKEN };
  const { exit, stderr } = await startAdrelay(["audit"], { env }).ended;
  expect(exit).toBe(4);
  expect(stderr).toContain("refused tokens came from 127.0.0.1");
});
