/** The command with a real relay: status, doctor, exit codes and shell completion. */
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freeLanePort, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  type CommandOptions,
  type EndedCommand,
  eventually,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startAdrelay,
  startRelayStack,
  startScriptedProvider,
  TEST_ADMIN_TOKEN,
  unknownId,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

const MAIN = fileURLToPath(new URL("../apps/cli/src/main.ts", import.meta.url));

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  stack = await startRelayStack({ redis, providerUrl: provider.url });
  caller = relayCaller(stack.gatewayUrl);
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
});
beforeEach(() => provider.onAcknowledge(() => acknowledged()));

function adrelayIn(env: CommandOptions["env"], ...words: string[]): Promise<EndedCommand> {
  return startAdrelay(words, { env: { ADRELAY_URL: stack.gatewayOpsUrl, ...env } }).ended;
}
const adrelay = (...words: string[]) => adrelayIn({ ADRELAY_ADMIN_TOKEN: TEST_ADMIN_TOKEN }, ...words);

test("status shows a refused key as an open circuit, and doctor reports it as a fault", async () => {
  await caller.acknowledgeUntilAccepted(unknownId(), "text");
  await eventually(async () => {
    const calm = await adrelay("status");
    expect(calm).toMatchObject({ exit: 0, stderr: "" });
    expect(calm.stdout).toMatch(/^default +0 +0 +1 +0 +0 +0 +0 +0$/m);
    expect(calm.stdout).toMatch(/^default +default +closed +- +- +0$/m);
    expect(calm.stdout).toMatch(/^gateway .*\n^worker /m);
  });
  provider.onAcknowledge(() => ({ kind: "answer", status: 401 }));
  const id = unknownId();
  await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
  await eventually(async () => {
    const { stdout } = await adrelay("status");
    expect(stdout).toMatch(/^default +default +open \(auth\) +\S+Z \(.+ ago\) +\S+Z \(in .+\) +1$/m);
  });
  // A probe may be under way.
  await eventually(async () => {
    expect((await adrelay("lookup", id)).stdout).toMatch(
      /^waits for +its provider, whose circuit breaker is open \(auth\)$/m,
    );
    const { stdout } = await adrelay("queued", "list");
    expect(stdout).toMatch(new RegExp(`^${id} .* provider \\(auth\\) `, "m"));
  });
  const doctor = await adrelay("doctor");
  expect(doctor).toMatchObject({
    exit: 1,
    stdout: expect.stringMatching(/^relay .+ \(ADRELAY_URL\)\nok {4}redis: /),
  });
  expect(doctor.stdout).toMatch(/^fail {2}provider:default: .+: key refused \(401\)$/m);
});

test("doctor warns if Redis may lose writes, and fails without a worker", async () => {
  const direct = new Redis(redis.url);
  await direct.config("SET", "appendfsync", "everysec");
  const lax = await adrelay("doctor");
  await direct.config("SET", "appendfsync", "always");
  direct.disconnect();
  expect(lax).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(/^warn {2}redis_append_only_file: .+ everysec: /m),
  });
  await stack.apps.get("worker")?.stop();
  const idle = await adrelay("doctor", "--json");
  expect(idle.exit).toBe(1);
  expect(JSON.parse(idle.stdout).checks).toContainEqual(
    expect.objectContaining({ name: "workers", status: "fail" }),
  );
  await stack.start("worker");
});

test("each kind of failure has its exit code", async () => {
  const away = `http://127.0.0.1:${await freeLanePort()}`;
  const wrong = { ADRELAY_ADMIN_TOKEN: "guess" };
  const codes = await Promise.all([
    adrelayIn(wrong, "status"),
    adrelayIn({}, "status"),
    adrelay("status", "--url", away),
    adrelay("status", "--url", stack.gatewayUrl),
    adrelay("lookup", unknownId()),
    adrelay("lookup", "12"),
  ]);
  expect(codes.map(({ exit }) => exit)).toEqual([4, 4, 3, 3, 1, 2]);
  // A gateway reports its readiness without a token.
  expect(codes.map(({ stdout }) => stdout).join("")).toBe(
    `relay    ${stack.gatewayOpsUrl} (ADRELAY_URL)\ngateway  ready (redis ok)\n\n`,
  );
  expect(codes.map(({ stderr }) => stderr).join("")).not.toContain("guess");
  expect(JSON.parse((await adrelayIn(wrong, "status", "--json")).stdout)).toMatchObject({ status: 401 });
});

const NO_REPLAY = "00000000-0000-4000-8000-000000000000";

test("without Redis status ends with 3, and doctor reports the reason", async () => {
  await redis.stop();
  expect(await adrelay("status")).toMatchObject({
    exit: 3,
    stdout: `relay    ${stack.gatewayOpsUrl} (ADRELAY_URL)\ngateway  not ready (redis failing)\n\n`,
    stderr: expect.stringContaining("`adrelay doctor` looks for the cause"),
  });
  // Nobody knows whether Redis has made it before it went away.
  const cancelled = await adrelay("replays", "cancel", NO_REPLAY);
  expect(cancelled.exit).toBe(3);
  expect(cancelled.stderr).toContain(
    `may have made the change: check before you repeat it, with \`adrelay replays show ${NO_REPLAY}\`.`,
  );
  expect(cancelled.stderr).not.toContain("Try again");
  expect(await adrelay("doctor")).toMatchObject({
    exit: 1,
    stdout: expect.stringMatching(/^fail {2}redis: does not answer/m),
  });
  await redis.restart();
});

/** Loads the completion script as ~/.bashrc does, then completes the last word of each line. */
const COMPLETE = `source <(adrelay completion)
read -ra registered < <(complete -p adrelay)
for line in "$@"; do
  read -ra COMP_WORDS <<< "$line"
  [[ $line == *" " ]] && COMP_WORDS+=("")
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  "\${registered[-2]}"
  echo "\${COMPREPLY[*]}"
done`;

test("bash completes commands and their options", async () => {
  const dir = mkdtempSync(join(tmpdir(), "adrelay-completion-"));
  const bin = join(dir, "adrelay");
  writeFileSync(bin, `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`);
  chmodSync(bin, 0o755);
  const lines = ["adrelay de", "adrelay dead ", "adrelay dead replay --r", "adrelay status x"];
  const { stdout } = await promisify(execFile)("bash", ["-c", COMPLETE, "bash", ...lines], {
    env: { PATH: `${dir}:${process.env["PATH"]}` },
  });
  rmSync(dir, { recursive: true });
  expect(stdout.split("\n")).toEqual(["dead", "list show replay discard", "--reason --rate", "", ""]);
});
