/** What a script can rely on: exit codes, which address and token are used, and that every call ends. */
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freeLanePort } from "@adrelay/dev-servers";
import { eventually, unknownId } from "@adrelay/testkit";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type AdminApi, type Disturbance, letter, startAdminApi, TOKEN } from "./admin-api.ts";
import { runCommand, runHere, startCommand } from "./adrelay-process.ts";

const ID = unknownId();

let api: AdminApi;
let dir: string;

beforeAll(async () => {
  api = await startAdminApi();
});
afterAll(() => api.close());
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "adrelay-cli-"));
  api.calls.length = 0;
  api.letters.clear();
  api.disturb = () => undefined;
});
afterEach(() => rmSync(dir, { recursive: true }));

function addLetters(count: number): string[] {
  const letters = Array.from({ length: count }, () => letter());
  return letters.map((one) => {
    api.letters.set(one.ad_response_id, one);
    return one.ad_response_id;
  });
}

test.each([
  [["stats"], "status"],
  [[], "name a command: status, dead,"],
  [["dead"], "list, show, replay, discard"],
  [["lookup"], "expected <id>: 0 given, at least 1 required"],
  [["publishers", "adopt", "gone"], "expected <gone> <by>: 1 given, at least 2 required"],
  [["dead", "list", "--limit"], "--limit needs a value"],
  [["status", "--colour"], "colour"],
  [["lookup", "12"], "UUID"],
  [["dead", "list", "--limit", "0"], "1 to 500"],
  [["dead", "list", "--since", "yesterday"], "2h"],
  [["dead", "list", "--since", "0s"], "cover nothing"],
  [["dead", "list", "--count", "--json"], "--count works neither"],
  [["dead", "replay"], "--all"],
  [["dead", "replay", unknownId(), "--all"], "not both"],
  [["dead", "replay", "--all", "--rate", "20000"], "10000"],
  [["dead", "discard", unknownId()], "--why is missing"],
  [["dead", "discard", "--code", "campaign_ended"], "--why is missing"],
  [["dead", "discard", "--why", "old"], "--all"],
  [["dead", "discard", unknownId(), "--code", "x", "--why", "old"], "not both"],
  [["dead", "discard", unknownId(), "--reason", "old", "--why", "old"], "not both"],
  [["dead", "discard", "--all", "--why", " "], "1 to 500"],
  [["dead", "replay", "--all", "--stop-at-share", "0"], "0.5, or never"],
  [["dead", "replay", "--all", "--stop-at-share", "50%"], "0.5, or never"],
  [["dead", "replay", "--all", "--stop-after", "0"], "1 to 10000"],
  [["queued"], "list, discard"],
  [["queued", "discard", "--why", "old"], "--unknown, or --all"],
  [["queued", "discard", "--unknown", "--all", "--why", "old"], "can't be combined"],
  [["queued", "discard", "--unknown"], "--why is missing"],
  [["queued", "discard", "--unknown", "--why", " "], "1 to 500"],
  [["queued", "discard", "--reason", "http_404", "--why", "old"], "reason"],
  [["queued", "discard", "--no-unknown", "--why", "old"], "--unknown, or --all"],
  [["queued", "list", "--reason", "http_404"], "reason"],
  [["discards"], "list, show, cancel"],
  [["dead", "discard", unknownId(), "--reason", "--yes"], "--reason needs a value"],
  [["dead", "discard", unknownId(), "--reason", " "], "1 to 500"],
  [["dead", "list", "--publisher", "a", "--publisher", "b"], "more than once"],
  [["status", "--timeout", "5"], "500ms"],
  [["status", "--timeout", "60d"], "at most one day"],
  [["status", "--url", "ftp://relay"], "http://"],
  [["status", "--token-file", "/no/such"], "ENOENT"],
])("the command line %j ends with 2, and nothing is sent", async (words, hint) => {
  const { exit, stdout, stderr } = await runHere(words, {
    env: { ADRELAY_ADMIN_TOKEN: TOKEN, ADRELAY_URL: api.url },
  });
  expect({ exit, stdout }).toEqual({ exit: 2, stdout: "" });
  expect(stderr).toContain(hint);
  expect(api.calls).toEqual([]);
});

test.each([
  ["cut", "No answer"],
  ["html", "unexpected answer"],
  ["old_form", "(at|version|states)"],
  ["unavailable", "doctor"],
  ["redirect", "answered 302"],
  ["no_admin_api", "ADMIN_TOKEN"],
] satisfies [Disturbance, string][])(
  "the disturbance %s ends the command with 3",
  async (disturbance, hint) => {
    api.disturb = () => disturbance;
    const { exit, stderr } = await runHere(["status", "--url", api.url]);
    expect(exit).toBe(3);
    expect(stderr).toMatch(new RegExp(hint));
  },
);

test("a relay that hangs or is absent ends the command with 3", async () => {
  api.disturb = () => "hang";
  const hung = await runHere(["status", "--url", api.url, "--timeout", "200ms"]);
  expect(hung).toMatchObject({ exit: 3, stderr: expect.stringContaining("within 200 ms") });
  const absent = await runHere(["status", "--url", `http://127.0.0.1:${await freeLanePort()}`]);
  expect(absent).toMatchObject({ exit: 3, stderr: expect.stringContaining("ECONNREFUSED") });
});

test("after a change without an answer the command warns that it may have happened", async () => {
  api.disturb = () => "cut";
  const { exit, stderr } = await runHere(["dead", "replay", unknownId(), "--url", api.url]);
  expect(exit).toBe(3);
  expect(stderr).toContain("The gateway may have made the change");
});

test.each([
  [["dead", "replay", "--all", "--yes"], "replays list"],
  [["dead", "discard", "--all", "--why", "old", "--yes"], "discards list"],
  [["dead", "replay", ID], `lookup ${ID}`],
  [["dead", "discard", ID, "--why", "old", "--yes"], `lookup ${ID}`],
  [["replays", "cancel", ID], `replays show ${ID}`],
  [["discards", "cancel", ID], `discards show ${ID}`],
  [["publishers", "adopt", "gone", "acme", "--yes"], "status"],
])("after a 503 to %j the command says how to look whether it happened", async (words, look) => {
  api.letters.set(ID, letter({ ad_response_id: ID }));
  const doubt = `The gateway may have made the change: check before you repeat it, with \`adrelay ${look}\`.`;
  for (const disturbance of ["unavailable", "cut", "html"] as const) {
    api.disturb = ({ method, body }) =>
      method === "POST" && Object(body).dry_run !== true ? disturbance : undefined;
    const { exit, stderr } = await runHere([...words, "--url", api.url]);
    expect(exit).toBe(3);
    expect(stderr).toContain(doubt);
    expect(stderr).not.toContain("Try again");
  }
});

test("after a 503 to a question the command says to try again", async () => {
  api.disturb = () => "unavailable";
  for (const words of [["status"], ["dead", "list"], ["dead", "replay", "--all", "--dry-run"]]) {
    const { exit, stderr } = await runHere([...words, "--url", api.url]);
    expect(exit).toBe(3);
    expect(stderr).toContain("Try again. `adrelay doctor` looks for the cause.");
    expect(stderr).not.toContain("may have made");
  }
});

test("there is no such warning for a change that was never sent, or for a dry run", async () => {
  const away = `http://127.0.0.1:${await freeLanePort()}`;
  const unsent = await runHere(["dead", "replay", unknownId(), "--url", away]);
  expect(unsent).toMatchObject({ exit: 3, stderr: expect.not.stringContaining("may have made the change") });
  api.disturb = () => "cut";
  const dry = await runHere(["dead", "replay", "--all", "--dry-run", "--url", api.url]);
  expect(dry).toMatchObject({ exit: 3, stderr: expect.not.stringContaining("may have made the change") });
});

test("Ctrl-C during a call ends the command with 130", async () => {
  api.disturb = () => "hang";
  const { child, ended } = startCommand(["status", "--url", api.url]);
  await eventually(() => expect(api.calls).toHaveLength(1));
  child.kill("SIGINT");
  expect((await ended).exit).toBe(130);
});

test("Ctrl-C while changes wait out a 503 says what was done and what wasn't, and ends with 130", async () => {
  const ids = addLetters(3);
  for (const id of ids) {
    api.letters.set(id, letter({ ad_response_id: id, state: "discarded" }));
  }
  api.disturb = ({ path }) => (path.includes(String(ids[1])) ? "busy" : undefined);
  const words = ["dead", "discard", ...ids, "--why", "old", "--yes", "--url", api.url];
  const { child, ended } = startCommand(words);
  await eventually(() => expect(api.calls).toHaveLength(3));
  child.kill("SIGINT");
  const { exit, stdout, stderr } = await ended;
  expect({ exit, stdout }).toEqual({ exit: 130, stdout: `${ids[0]}  discarded\n` });
  expect(stderr).toContain(`\n1 of 3 were changed.\nNot known: ${ids[1]}\nNot changed: ${ids[2]}\n`);
});

test.each([
  ["ADRELAY_ADMIN_TOKEN", { ADRELAY_ADMIN_TOKEN: TOKEN, ADMIN_TOKEN: "other" }, []],
  ["ADMIN_TOKEN", { ADMIN_TOKEN: TOKEN }, []],
  ["--token-file", { ADRELAY_ADMIN_TOKEN: "other" }, ["--token-file", "token"]],
] as const)("the token comes from %s", async (_source, env, words) => {
  writeFileSync(join(dir, "token"), `${TOKEN}\n`);
  expect((await runCommand(["status", "--url", api.url, ...words], { env, cwd: dir })).exit).toBe(0);
});

function writeRunFile(pid: number): void {
  mkdirSync(join(dir, ".adrelay"));
  const run = { gatewayOps: api.url, adminToken: TOKEN, pids: { start: pid } };
  writeFileSync(join(dir, ".adrelay", "run.json"), JSON.stringify(run));
}

test("in the folder of a running stack the command needs no address and no token", async () => {
  writeRunFile(process.pid);
  const { exit, stdout } = await runCommand(["status"], { env: {}, cwd: dir });
  expect(exit).toBe(0);
  expect(stdout).toContain(`relay    ${api.url} (npm start, ${join(dir, ".adrelay", "run.json")})\n`);
});

test.each([
  ["ADRELAY_URL", { ADRELAY_URL: "here" }, []],
  ["--url", { ADRELAY_URL: "http://127.0.0.1:9" }, ["--url", "here"]],
] as const)("status says that the address comes from %s", async (source, { ADRELAY_URL }, words) => {
  writeRunFile(process.pid);
  const here = (text: string) => (text === "here" ? api.url : text);
  const env = { ADRELAY_ADMIN_TOKEN: TOKEN, ADRELAY_URL: here(ADRELAY_URL) };
  const { stdout } = await runCommand(["status", ...words.map(here)], { env, cwd: dir });
  expect(stdout).toContain(`relay    ${api.url} (${source})\n`);
});

test("the token of a local stack is sent to its own address, however it is given, and to no other", async () => {
  writeRunFile(process.pid);
  for (const url of [api.url, `${api.url}/`]) {
    expect((await runCommand(["status", "--url", url], { env: {}, cwd: dir })).exit).toBe(0);
    expect((await runCommand(["status"], { env: { ADRELAY_URL: url }, cwd: dir })).exit).toBe(0);
  }
  api.calls.length = 0;
  const others = [`${api.url}/other`, api.url.replace("127.0.0.1", "localhost"), api.url.slice(0, -1)];
  for (const url of [...others, api.url.replace("http", "https")]) {
    expect((await runCommand(["status", "--url", url], { env: {}, cwd: dir })).exit).toBe(4);
  }
  expect(api.calls).toEqual([]);
});

test("the file that a killed stack left behind is ignored", async () => {
  const gone = startCommand(["--version"]);
  await gone.ended;
  writeRunFile(gone.child.pid ?? 0);
  const { exit, stderr } = await runCommand(["status"], { env: {}, cwd: dir });
  expect(exit).toBe(4);
  expect(stderr).toContain("http://127.0.0.1:8081");
});

test("a reader that closes the pipe early is not a failure", async () => {
  const { child, ended } = startCommand(["--help"]);
  child.stdout?.destroy();
  expect((await ended).exit).toBe(0);
});

test("a reader that closes the pipe early doesn't end a command amid its changes", async () => {
  const ids = addLetters(5);
  api.disturb = () => (api.calls.length === 2 ? "unknown_id" : undefined);
  const { child, ended } = startCommand(["dead", "replay", ...ids, "--no-wait", "--url", api.url]);
  child.stdout?.destroy();
  expect((await ended).exit).toBe(1);
  expect(api.calls.map(({ path }) => path)).toEqual(ids.map((id) => `/acknowledgments/${id}/replay`));
});

// Each write to this device fails as on a full disk.
test.skipIf(!existsSync("/dev/full"))("a full disk under the output is told, and ends with 3", async () => {
  const ids = addLetters(2);
  const full = openSync("/dev/full", "w");
  for (const words of [["--help"], ["dead", "replay", ...ids, "--no-wait", "--url", api.url]]) {
    expect(await runCommand(words, { stdout: full })).toMatchObject({
      exit: 3,
      stderr: "adrelay: standard output can't be written (ENOSPC).\n",
    });
  }
  closeSync(full);
  expect(api.calls.filter(({ method }) => method === "POST")).toHaveLength(2);
});

test("completion offers the commands", async () => {
  expect((await runCommand(["completion"])).stdout).toContain("_adrelay_yargs_completions");
  const { stdout } = await runCommand(["--get-yargs-completions", "adrelay", "dead", ""]);
  expect(stdout.trim().split("\n")).toEqual(["list", "show", "replay", "discard"]);
});
