/** `adrelay provider check` against providers that are as they should be, and others that lack something. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { freeLanePort, startTestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  type Behaviour,
  codeBlocks,
  filled,
  type ScriptedProvider,
  startAdServer,
  startScriptedProvider,
  unfilled,
} from "@adrelay/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runCommand, runHere } from "./adrelay-process.ts";

const KEY = "our-key-of-a-test";
/** The key in the program of docs/provider.md. */
const KEY_OF_GUIDE = "our-key";
const NAMES = [
  "injection",
  "injection without an ad",
  "acknowledgment",
  "the same acknowledgment again",
  "acknowledgment of a 201 or 202",
  "acknowledgment of an unknown id",
  "injection with a wrong key",
  "acknowledgment with a wrong key",
];

let provider: ScriptedProvider;

beforeEach(async () => {
  provider = await startScriptedProvider();
  const ads = new Set<unknown>();
  const others = new Set<unknown>();
  const guarded = (post: { headers: Record<string, unknown> }, behave: () => Behaviour): Behaviour =>
    post.headers["x-service-api-key"] === KEY ? behave() : { kind: "answer", status: 401, body: {} };
  const remember = (behaviour: Behaviour, ids: Set<unknown>): Behaviour => {
    ids.add(behaviour.kind === "answer" ? Object(behaviour.body).ad_response_id : undefined);
    return behaviour;
  };
  provider.onStart((post) =>
    guarded(post, () =>
      String(post.fields["prompt"]).includes("shoes")
        ? remember(filled(), ads)
        : remember(unfilled(202), others),
    ),
  );
  provider.onAcknowledge((post) =>
    guarded(post, () => {
      const id = post.fields["ad_response_id"];
      const status = others.has(id) ? 406 : 404;
      return ads.has(id) ? acknowledged("no_ad_used") : { kind: "answer", status, body: {} };
    }),
  );
});
afterEach(() => provider.close());

/** Runs the check in this process. Each line by its name. */
async function check(url = provider.url, words: readonly string[] = [], key = KEY) {
  const run = await runHere(["provider", "check", "--url", url, "--key", key, "--json", ...words], {
    env: {},
  });
  const { checks = [] } = Object(JSON.parse(run.stdout || "{}"));
  const byName: Record<string, { status: string; detail: string }> = {};
  for (const { name, status, detail } of checks) {
    byName[name] = { status, detail };
  }
  return { exit: run.exit, names: Object.keys(byName), of: (name: string) => byName[name] };
}

test("a provider that keeps to the interface passes each check, without a gateway or a token", async () => {
  const env = { PROVIDER_URL: provider.url, PROVIDER_API_KEY: KEY };
  const { exit, stdout, stderr } = await runCommand(["provider", "check"], { env });
  expect([exit, stderr]).toEqual([0, ""]);
  expect(
    stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.slice(0, 6)),
  ).toEqual(NAMES.map(() => "ok    "));
  const keys = provider.posts.filter(({ operation }) => operation === "acknowledge");
  expect(keys[0]?.headers["idempotency-key"]).toBe(keys[1]?.headers["idempotency-key"]);
  expect(stdout).not.toContain(KEY);
});

test.each([
  [{ execution_time_ms: undefined, product_name: undefined, success: undefined }, "ok", "an ad."],
  [{ enhanced_prompt: undefined }, "fail", "malformed_answer (enhanced_prompt must be a string)"],
  [{ ad_response_id: "ad-7" }, "fail", "malformed_answer (ad_response_id must be a UUID)"],
])("an ad with %j is judged %s", async (members, status, detail) => {
  provider.onStart(() => filled(members));
  expect((await check()).of("injection")).toMatchObject({ status, detail: expect.stringContaining(detail) });
});

test.each([
  [{ kind: "answer", status: 200, body: { status: "ok" } }, "malformed_answer (ad_ack_id must be a string)"],
  [{ kind: "answer", status: 500 }, "http_500"],
  [{ kind: "answer", status: 422, body: {} }, "a dead letter (http_422)"],
  [{ kind: "raw", status: 403, bytes: "<html>" }, "slowly: edge_403"],
  [{ kind: "reset" }, "same Idempotency-Key"],
  [{ kind: "hang" }, "same Idempotency-Key"],
] as const)("an acknowledgment that meets %j fails the check", async (behaviour, detail) => {
  provider.onAcknowledge(() => behaviour);
  const { exit, names, of } = await check(provider.url, ["--timeout", "300ms"]);
  expect([exit, names]).toEqual([1, NAMES]);
  expect(of("acknowledgment")).toMatchObject({ status: "fail", detail: expect.stringContaining(detail) });
});

test("a provider that accepts everything is warned about", async () => {
  provider.onStart(() => filled());
  provider.onAcknowledge(() => acknowledged());
  const { exit, of } = await check();
  expect(exit).toBe(1);
  expect(of("acknowledgment of an unknown id")).toMatchObject({ status: "warn" });
  expect(of("acknowledgment of a 201 or 202")?.detail).toContain("--prompt-without-ad");
  expect(of("injection with a wrong key")).toMatchObject({ status: "warn" });
  expect(of("acknowledgment with a wrong key")).toMatchObject({ status: "fail" });
});

test("a provider that can't be reached fails, with one line for all other checks", async () => {
  const { exit, names, of } = await check(`http://127.0.0.1:${await freeLanePort()}`);
  expect([exit, names]).toEqual([1, ["injection", "all other checks"]]);
  expect(of("injection")).toMatchObject({ status: "fail", detail: expect.stringContaining("unreachable") });
  expect(of("all other checks")?.detail).toBe(
    "not tried: the service can't be reached (unreachable). Check --url.",
  );
});

test("a key that the provider refuses fails, with one line for all other checks", async () => {
  const { exit, names, of } = await check(provider.url, [], "another");
  expect([exit, names]).toEqual([1, ["injection", "all other checks"]]);
  expect(of("all other checks")?.detail).toBe(
    "not tried: the service refuses our key (401). Check --key and --key-header.",
  );
});

test("after an unusable ad no other prompt is advised", async () => {
  provider.onStart(() => filled({ ad_response_id: "ad-7" }));
  const { of } = await check();
  for (const name of ["acknowledgment", "acknowledgment of a 201 or 202"]) {
    expect(of(name)).toMatchObject({
      status: "warn",
      detail: expect.stringMatching(/^not tried: the check "injection.*" got no usable answer/),
    });
  }
});

test("an ad that comes after the gateway's time limit fails the check as lost", async () => {
  provider.onStart(() => ({ kind: "late", delayMs: 150, answer: filled() }));
  const { exit, of } = await check(provider.url, ["--injection-timeout", "100ms"]);
  expect([exit, of("injection")?.status]).toEqual([1, "fail"]);
  expect(of("injection")?.detail).toMatch(
    /^200 after \d+ ms: too late\. After 100 ms \(INJECTION_TIMEOUT_MS\) .* The ad is lost\.$/,
  );
});

test("the time limits of the relay's settings are those of the check", async () => {
  provider.onStart(() => ({ kind: "late", delayMs: 300, answer: filled() }));
  provider.onAcknowledge(() => ({ kind: "late", delayMs: 300, answer: acknowledged() }));
  const env = { INJECTION_TIMEOUT_MS: "100", DELIVERY_TIMEOUT_MS: "0.1s" };
  const run = await runHere(["provider", "check", "--url", provider.url, "--key", KEY], { env });
  expect(run.stdout).toMatch(/injection .*too late\. After 100 ms \(INJECTION_TIMEOUT_MS\)/);
  expect(run.stdout).toMatch(/acknowledgment .*too late\. After 100 ms \(DELIVERY_TIMEOUT_MS\)/);
});

test("a call without an answer names the error behind it, and the check asks for no compression", async () => {
  provider.onStart(() => ({
    kind: "answer",
    status: 200,
    body: {},
    headers: { "Content-Encoding": "gzip" },
  }));
  expect((await check()).of("injection")?.detail).toMatch(/^connection_lost \(Z_DATA_ERROR\) after/);
  expect(provider.posts[0]?.headers["accept-encoding"]).toBe("identity");
});

test("a 404 in a proxy's form is warned about, with what makes it the service's", async () => {
  provider.onAcknowledge(() => ({ kind: "answer", status: 404, body: { message: "unknown" } }));
  expect((await check()).of("acknowledgment of an unknown id")).toMatchObject({
    status: "warn",
    detail: expect.stringContaining(
      "edge_404 (an object with only message counts as a proxy's: add code). Better: 404",
    ),
  });
});

test.each([
  [["--url", "ftp://ads", "--key", KEY], "--url must be an http:// or https:// URL"],
  [["--url", "http://ads.example"], "--key is missing"],
  [["--key", KEY], "--url is missing"],
  [
    ["--url", "http://ads.example", "--key", KEY, "--injection-timeout", "soon"],
    "--injection-timeout must be",
  ],
  [["--url", "http://ads.example", "--key", "a key\n"], "--key must be printable ASCII"],
])("the options %j are refused by name", async (words, hint) => {
  const { exit, stderr } = await runHere(["provider", "check", ...words], { env: {} });
  expect(exit).toBe(2);
  expect(stderr).toContain(hint);
});

test("the shipped ad server passes each check", async () => {
  const redis = await startTestRedis();
  const adServer = await startAdServer(redis, KEY);
  try {
    const { exit, of } = await check(adServer.url);
    expect(NAMES.map((name) => [name, of(name)?.status])).toEqual(NAMES.map((name) => [name, "ok"]));
    expect(exit).toBe(0);
  } finally {
    await adServer.stop();
    await redis.dispose();
  }
});

const hasPython = spawnSync("python3", ["--version"]).status === 0;

test.skipIf(!hasPython)("the provider of docs/provider.md passes each check", async () => {
  const [code = ""] = codeBlocks("docs/provider.md", "python");
  const child: ChildProcess = spawn("python3", ["-c", code, "0"], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const [port] = await once(child.stdout ?? child, "data");
    const { exit, of } = await check(`http://127.0.0.1:${String(port).trim()}`, [], KEY_OF_GUIDE);
    expect(NAMES.map((name) => [name, of(name)?.status])).toEqual(NAMES.map((name) => [name, "ok"]));
    expect(exit).toBe(0);
  } finally {
    child.kill();
    await once(child, "close");
  }
});
