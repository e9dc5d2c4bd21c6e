/** The command with a real relay: from the sources, and as the published package. */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { doctorReportSchema } from "@adrelay/contract";
import { freeLanePort, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AdServerProcess,
  acknowledged,
  eventually,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startAdServer,
  startRelayStack,
  startScriptedProvider,
  TEST_ADMIN_TOKEN,
  unknownId,
} from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const SCRIPT = join(ROOT, "scripts/adrelay.ts");

let redis: TestRedis;
let adServer: AdServerProcess;
let provider: ScriptedProvider;
let stack: RelayStack;
let dir: string;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(["--maxmemory", "1gb"]), startScriptedProvider()]);
  adServer = await startAdServer(redis);
  stack = await startRelayStack({ redis, providerUrl: provider.url });
  dir = mkdtempSync(join(tmpdir(), "adrelay-cli-"));
});
afterAll(async () => {
  await stack.stop();
  await adServer.stop();
  await Promise.all([provider.close(), redis.dispose()]);
  rmSync(dir, { recursive: true });
});
beforeEach(() => provider.onAcknowledge(() => acknowledged()));

interface Ended {
  readonly exit: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(
  program: string,
  words: readonly string[],
  env: Record<string, string> = {},
): Promise<Ended> {
  const options = { cwd: dir, env: { PATH: process.env["PATH"], HOME: dir, ...env } };
  try {
    return { exit: 0, ...(await promisify(execFile)(program, [...words], options)) };
  } catch (error) {
    const { code, stdout, stderr } = Object(error);
    return { exit: code, stdout, stderr };
  }
}

const adrelay = (...words: string[]) =>
  run(process.execPath, [SCRIPT, ...words], {
    ADRELAY_URL: stack.gatewayOpsUrl,
    ADRELAY_ADMIN_TOKEN: TEST_ADMIN_TOKEN,
  });

test("npm run adrelay replays a dead letter once, and its hints say npm run adrelay", async () => {
  const caller = relayCaller(stack.gatewayUrl);
  const id = unknownId();
  provider.onAcknowledge(() => ({ kind: "answer", status: 400 }));
  await caller.acknowledgeUntilAccepted(id, "text");
  provider.onAcknowledge(() => acknowledged());
  expect(await adrelay("dead", "replay", id)).toEqual({ exit: 0, stdout: `${id}  delivered\n`, stderr: "" });
  expect(await adrelay("dead", "replay", id)).toMatchObject({ exit: 1, stdout: "" });
  expect(await adrelay("dead")).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining("`npm run adrelay -- --help`"),
  });
});

test("npm run adrelay says that ADRELAY_HOME in .env has no effect, and runs", async () => {
  const root = join(dir, "root");
  mkdirSync(root);
  for (const name of ["apps", "scripts"]) {
    symlinkSync(join(ROOT, name), join(root, name));
  }
  writeFileSync(join(root, ".env"), "ADRELAY_HOME=/data/relay\n");
  const script = ["--preserve-symlinks-main", join(root, "scripts/adrelay.ts")];
  expect(await run(process.execPath, [...script, "--help"])).toEqual({
    exit: 0,
    stdout: expect.stringContaining("adrelay doctor"),
    stderr: expect.stringContaining("adrelay: .env: ADRELAY_HOME has no effect here"),
  });
});

test("doctor finds no fault in a relay with the real ad server", async () => {
  const gateway = stack.apps.get("gateway");
  await gateway?.stop();
  await stack.start("gateway", { PROVIDER_URL: adServer.url });
  const { exit, stdout } = await eventually(async () => {
    const ended = await adrelay("doctor", "--json");
    expect(ended.exit).toBe(0);
    return ended;
  });
  expect(exit).toBe(0);
  const { checks } = doctorReportSchema.parse(JSON.parse(stdout));
  expect(checks.filter(({ status }) => status !== "ok")).toEqual([]);
});

test("the packed command runs without the checkout, also on an older Node", async () => {
  const packed = await run(process.execPath, [join(ROOT, "scripts/pack-cli.ts"), dir]);
  expect(packed).toMatchObject({ exit: 0, stderr: "" });
  const archive = packed.stdout.trim();
  writeFileSync(join(dir, "package.json"), JSON.stringify({ name: "empty", private: true }));
  const flags = ["--offline", "--no-audit", "--no-fund", "--silent"];
  expect(await run("npm", ["install", ...flags, archive])).toMatchObject({ exit: 0 });
  const help = await run("npx", ["--offline", "adrelay", "--help"]);
  expect(help).toMatchObject({ exit: 0, stdout: expect.stringContaining("Exit codes:") });
  const bin = join(dir, "node_modules/adrelay/adrelay.js");
  const env = { ADRELAY_ADMIN_TOKEN: TEST_ADMIN_TOKEN };
  for (const node of await nodesToTry()) {
    const away = await run(node, [bin, "status", "--url", `http://127.0.0.1:${await freeLanePort()}`], env);
    expect(away).toMatchObject({ exit: 3, stdout: "", stderr: expect.stringContaining("ECONNREFUSED") });
    const seen = await run(node, [bin, "doctor", "--json", "--url", stack.gatewayOpsUrl], env);
    expect(doctorReportSchema.safeParse(JSON.parse(seen.stdout)).success).toBe(true);
  }
});

/** This Node, and the Nodes of the system that are new enough for the package. */
async function nodesToTry(): Promise<string[]> {
  const found = ["/usr/bin/node", "/usr/local/bin/node"].filter((path) => existsSync(path));
  const versions = await Promise.all(found.map((path) => run(path, ["--version"])));
  return [
    process.execPath,
    ...found.filter((_path, at) => Number(/^v(\d+)/.exec(versions[at]?.stdout ?? "")?.[1]) >= 20),
  ];
}
