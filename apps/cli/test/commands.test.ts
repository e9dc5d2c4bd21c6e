/** Each command against the admin API's shapes on a real socket: what it sends, shows and ends with. */

import { stripVTControlCharacters } from "node:util";
import { eventually, unknownId } from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type AdminApi, letter, replay, startAdminApi } from "./admin-api.ts";
import { runHere, startAdrelay } from "./adrelay-process.ts";

let api: AdminApi;

beforeAll(async () => {
  api = await startAdminApi();
});
afterAll(() => api.close());
beforeEach(() => {
  api.calls.length = 0;
  api.letters.clear();
  api.replays.clear();
  api.replayStep = 2;
  api.disturb = () => undefined;
});

const adrelay = (...words: string[]) => runHere(["--url", api.url, ...words]);
const atTerminal = (typed: string, ...words: string[]) => runHere(["--url", api.url, ...words], { typed });

function addLetters(count: number): string[] {
  const ids = Array.from({ length: count }, () => letter());
  for (const one of ids) {
    api.letters.set(one.ad_response_id, one);
  }
  return ids.map((one) => one.ad_response_id);
}

test("status shows states, dead letters, providers, processes and a loss of data", async () => {
  const calm = await adrelay("status");
  expect(calm).toMatchObject({ exit: 0, stderr: "" });
  for (const part of [
    /^acme +0 +0 +41 +0 +3/m,
    /^all +0 +5/m,
    /http_400 +3$/m,
    /open \(outage\)/,
    /worker +box/,
  ]) {
    expect(calm.stdout).toMatch(part);
  }
  expect(calm.stdout).not.toContain("\u001b");
  const before = api.stats;
  api.stats = { ...before, data_loss: { at: before.at, detail: "Redis was emptied" } };
  expect((await adrelay("status")).stdout).toContain("lost data");
  api.stats = before;
});

test.each(["status", "doctor", "audit", "dead list", "replays list"])(
  "%s --json prints what the API answered and nothing else",
  async (words) => {
    const { exit, stdout, stderr } = await adrelay(...words.split(" "), "--json");
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
    expect(stdout.split("\n")).toHaveLength(2);
    expect(JSON.parse(stdout)).toBeTypeOf("object");
    if (words === "status") {
      expect(JSON.parse(stdout)).toEqual(api.stats);
    }
  },
);

test("dead list sends its filter and pages on", async () => {
  const ids = addLetters(5);
  const filter = ["--publisher", "acme", "--reason", "http_400", "--since", "2h", "--until", "2026-11-28"];
  const page = await adrelay("dead", "list", "--limit", "2", ...filter);
  expect(page.stdout).toContain(ids[1]);
  expect(page.stdout).not.toContain(ids[2]);
  expect(page.stderr).toContain("--cursor 2");
  const { since, ...query } = api.calls[0]?.query ?? {};
  expect(query).toEqual({
    state: "dead",
    publisher: "acme",
    reason: "http_400",
    until: "2026-11-28T00:00:00.000Z",
    limit: "2",
  });
  expect(Math.abs(Date.now() - 7_200_000 - Date.parse(since ?? ""))).toBeLessThan(60_000);
  expect((await adrelay("dead", "list", "--cursor", "4")).stdout).toContain(ids[4]);
});

test("dead list says so when there are none", async () => {
  expect(await adrelay("dead", "list")).toEqual({ exit: 0, stdout: "", stderr: "No dead letters match.\n" });
});

test("dead list --all goes through all pages", async () => {
  const ids = addLetters(501);
  const { stdout } = await adrelay("dead", "list", "--all", "--json");
  const pages = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(pages.flatMap(({ acknowledgments }) => acknowledgments)).toHaveLength(ids.length);
});

test("dead show and lookup tell of one, and show fails if it is no dead letter", async () => {
  const [id = ""] = addLetters(1);
  const shown = await adrelay("dead", "show", id);
  expect(shown.exit).toBe(0);
  expect(shown.stdout).toMatch(/http_400: The provider answered 400[\s\S]*retry +http_500 +12/);
  api.letters.set(id, letter({ ad_response_id: id, state: "delivered", status: "ok" }));
  expect(await adrelay("dead", "show", id)).toMatchObject({
    exit: 1,
    stderr: expect.stringContaining("delivered"),
  });
  expect((await adrelay("lookup", id.toUpperCase())).exit).toBe(0);
  expect(await adrelay("lookup", unknownId())).toMatchObject({ exit: 1, stdout: "" });
});

test("on a narrow terminal a row that doesn't fit becomes a paragraph", async () => {
  const [id = ""] = addLetters(2);
  const wide = await runHere(["--url", api.url, "dead", "list"], { typed: "" });
  expect(wide.stdout).toMatch(new RegExp(`^${id} +acme +http_400`, "m"));
  const narrow = await runHere(["--url", api.url, "dead", "list"], { typed: "", columns: 60 });
  expect(stripVTControlCharacters(narrow.stdout)).toMatch(
    new RegExp(`^ad response  ${id}\npublisher    acme\n[^]*\n\nad response  `),
  );
});

test("an empty page that others follow is not called the end", async () => {
  api.disturb = () => "empty_page";
  const { exit, stdout, stderr } = await adrelay("dead", "list");
  expect({ exit, stdout }).toEqual({ exit: 0, stdout: "" });
  expect(stderr).toBe("None on this page.\nMore with --cursor next, or all with --all\n");
});

test("a provider's words can't steer the terminal", async () => {
  const one = letter({ provider_error: "\u001b[2J\u202egone" });
  api.letters.set(one.ad_response_id, one);
  const { stdout } = await adrelay("lookup", one.ad_response_id);
  expect(stdout).toContain("[2J");
  expect([...stdout].filter((char) => char === "\u001b" || char === "\u202e")).toEqual([]);
});

test("dead replay of ids replays each and tells which were left", async () => {
  const [first = "", second = ""] = addLetters(2);
  api.letters.set(first, letter({ ad_response_id: first, state: "refused" }));
  const { exit, stdout, stderr } = await adrelay("dead", "replay", first, second, second);
  expect(exit).toBe(1);
  expect(stdout).toBe(`${second}  queued\n`);
  expect(stderr).toContain(`${first} was left as it is`);
  expect(api.calls.map(({ method }) => method)).toEqual(["POST", "POST"]);
});

test("a bulk replay without a terminal wants --yes and has changed nothing", async () => {
  addLetters(3);
  const { exit, stderr } = await adrelay("dead", "replay", "--all");
  expect({ exit, said: stderr.includes("--yes") }).toEqual({ exit: 2, said: true });
  expect(api.replays.size).toBe(0);
});

test("a bulk replay sends filter and rate, writes plain lines, and ends when it is complete", async () => {
  addLetters(4);
  const words = ["dead", "replay", "--reason", "http_400", "--rate", "50", "--yes"];
  const { exit, stdout, stderr } = await adrelay(...words);
  expect(exit).toBe(0);
  expect(stdout).toMatch(/state +completed/);
  expect(stderr).toMatch(/^2 of 4 replayed\n4 of 4 replayed\n$/);
  expect(api.calls.slice(0, 2).map(({ body }) => body)).toEqual([
    { reason: "http_400", rate_per_second: 50, dry_run: true },
    { reason: "http_400", rate_per_second: 50 },
  ]);
});

test("--dry-run tells how many match; nothing to replay is no fault", async () => {
  addLetters(2);
  expect(await adrelay("dead", "replay", "--all", "--dry-run")).toMatchObject({
    exit: 0,
    stdout: "2 dead letters match\n",
  });
  expect((await adrelay("dead", "replay", "--all", "--dry-run", "--json")).stdout).toBe(
    '{"dry_run":true,"matched":2}\n',
  );
  api.letters.clear();
  expect((await adrelay("dead", "replay", "--all")).exit).toBe(0);
  expect(api.replays.size).toBe(0);
});

test("--no-wait starts a replay and leaves; --json prints it alone", async () => {
  addLetters(4);
  const { exit, stdout } = await adrelay("dead", "replay", "--all", "--yes", "--no-wait", "--json");
  expect(exit).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ state: "running", matched: 4 });
});

test("Ctrl-C leaves the replay running and says how to cancel it", async () => {
  addLetters(4);
  api.replayStep = 0;
  const { child, output, ended } = startAdrelay(["--url", api.url, "dead", "replay", "--all", "--yes"]);
  await eventually(() => expect(output.stderr).toContain("0 of 4 replayed"));
  child.kill("SIGINT");
  child.kill("SIGINT");
  const { exit, stderr } = await ended;
  const [id = ""] = api.replays.keys();
  expect(exit).toBe(130);
  expect(stderr).toContain(`adrelay replays cancel ${id}`);
  expect(api.replays.get(id)?.state).toBe("running");
});

test("a gateway that is away for a moment doesn't end the watching", async () => {
  addLetters(4);
  let looks = 0;
  api.disturb = ({ method, path }) => {
    looks += method === "GET" && path.startsWith("/replays/") ? 1 : 0;
    return looks === 2 ? "cut" : looks === 3 ? "unavailable" : undefined;
  };
  expect((await adrelay("dead", "replay", "--all", "--yes")).exit).toBe(0);
});

test("replays are listed, shown, watched and cancelled", async () => {
  const [watched, cancelled] = [replay(), replay()];
  for (const one of [watched, cancelled]) {
    api.replays.set(one.replay_id, one);
  }
  const id = watched.replay_id;
  expect((await adrelay("replays", "list")).stdout).toContain("reason=http_400");
  expect((await adrelay("replays", "show", id)).stdout).toContain("2 of 4");
  expect((await adrelay("replays", "show", id, "--watch")).stdout).toMatch(/state +completed/);
  expect((await adrelay("replays", "cancel", cancelled.replay_id)).stdout).toMatch(/state +cancelled/);
  expect((await adrelay("replays", "show", cancelled.replay_id, "--watch")).exit).toBe(1);
  expect((await adrelay("replays", "show", "no-such")).exit).toBe(1);
});

test("at a terminal a bulk replay asks, and shows a bar that moves", async () => {
  addLetters(4);
  const yes = await atTerminal("y\n", "dead", "replay", "--all");
  expect(yes.exit).toBe(0);
  expect(yes.stderr).toContain("Replay 4 dead letters, 100 a second? [y/N]");
  expect(yes.stderr).toContain("4 of 4");
  expect(yes.stdout).toContain("\u001b[1m");
});

test.each([
  ["n\n", 1],
  ["\n", 1],
  ["\u0003", 130],
  ["\u0004", 1],
] as const)("at a terminal %j changes nothing", async (input, exit) => {
  const [id = ""] = addLetters(2);
  expect((await atTerminal(input, "dead", "replay", "--all")).exit).toBe(exit);
  expect((await atTerminal(input, "dead", "discard", id, "--reason", "spoilt")).exit).toBe(exit);
  expect(api.calls.filter(({ body }) => body !== undefined && Object(body).dry_run !== true)).toEqual([]);
});

test("dead discard sends its reason", async () => {
  const [id = ""] = addLetters(1);
  expect((await adrelay("dead", "discard", id, "--reason", "test data", "--yes")).exit).toBe(0);
  expect(api.calls[0]).toMatchObject({
    path: `/acknowledgments/${id}/discard`,
    body: { reason: "test data" },
  });
  expect(api.letters.get(id)?.state).toBe("discarded");
});

test("audit tells who did what", async () => {
  expect((await adrelay("audit")).stdout).toMatch(/alice +replays_start +r-1 +matched=4$/m);
});

test("doctor ends with 1 for a fault, and not for a warning", async () => {
  const well = api.doctor;
  api.doctor = { at: well.at, checks: [{ name: "redis_memory", status: "warn", detail: "90 %" }] };
  expect(await adrelay("doctor")).toMatchObject({ exit: 0, stdout: "warn  redis_memory: 90 %\n" });
  api.doctor = { at: well.at, checks: [{ name: "workers", status: "fail", detail: "none seen" }] };
  expect((await adrelay("doctor")).exit).toBe(1);
  expect((await adrelay("doctor", "--json")).exit).toBe(1);
  api.doctor = well;
});
