/** Commands at a terminal, and with answers that a real gateway hardly ever gives. The e2e tests cover the rest. */
import { stripVTControlCharacters } from "node:util";
import type { AcknowledgmentDetail } from "@adrelay/contract";
import { unknownId } from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type AdminApi, COUNTED_UNTIL, letter, replay, startAdminApi } from "./admin-api.ts";
import { runHere } from "./adrelay-process.ts";

const NO_PAGE = '{"acknowledgments":[],"next_cursor":null}';

let api: AdminApi;

beforeAll(async () => {
  api = await startAdminApi();
});
afterAll(() => api.close());
beforeEach(() => {
  api.calls.length = 0;
  api.letters.clear();
  api.replays.clear();
  api.discards.clear();
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

test("status shows states, dead letters, providers, processes and lost data", async () => {
  const calm = await adrelay("status");
  expect(calm).toMatchObject({ exit: 0, stderr: "" });
  for (const part of [
    /^acme +0 +0 +41 +0 +3/m,
    /^all +0 +5/m,
    /http_400 +3$/m,
    /open \(outage\)/,
    /worker +box/,
    /^redis memory +45.0 MB of 64.0 MB \(70 %\): acknowledgments of unknown ids get 503$/m,
    /^acme +unknown_bytes +3.0 MB of 3.2 MB \(94 %\) +88$/m,
    /^acme +requests_per_second +- +150$/m,
  ]) {
    expect(calm.stdout).toMatch(part);
  }
  expect(calm.stdout).toContain(`relay    ${api.url} (--url)\ngateway  ready (redis ok)\n\n`);
  expect(calm.stdout).toMatch(/^queue +1 waiting, 2 active, 2 delayed\ntexts of dead letters +3$/m);
  expect(calm.stdout).not.toContain("queued_bytes");
  expect(calm.stdout).not.toContain("\u001b");
  const before = api.stats;
  api.stats = { ...before, data_loss: { at: before.at, detail: "Redis was emptied" } };
  expect((await adrelay("status")).stdout).toContain("lost data");
  api.stats = before;
});

test("a terminal that is too narrow for a table shows each row as a paragraph", async () => {
  const [id = ""] = addLetters(2);
  const wide = await runHere(["--url", api.url, "dead", "list"], { typed: "" });
  expect(wide.stdout).toMatch(new RegExp(`^${id} +acme +http_400`, "m"));
  const narrow = await runHere(["--url", api.url, "dead", "list"], { typed: "", columns: 60 });
  expect(stripVTControlCharacters(narrow.stdout)).toMatch(
    new RegExp(`^ad response  ${id}\npublisher    acme\n[^]*\n\nad response  `),
  );
});

test("status shows that a gateway is not ready, even if there are no numbers", async () => {
  const before = api.readiness;
  api.readiness = {
    status: "not_ready",
    stopping: false,
    checks: { redis: "failing" },
    warnings: { redis_data: "data lost at 09:00" },
  };
  api.disturb = () => "unavailable";
  const { exit, stdout } = await adrelay("status");
  expect(exit).toBe(3);
  expect(stdout).toBe(
    `relay    ${api.url} (--url)\ngateway  not ready (redis failing)\nwarning  redis_data: data lost at 09:00\n\n`,
  );
  api.disturb = () => undefined;
  expect((await adrelay("status", "--json")).stdout).toBe(`${JSON.stringify(api.stats)}\n`);
  api.readiness = before;
});

test("an empty page that more pages follow is not reported as the end", async () => {
  api.disturb = () => ({ raw: '{"acknowledgments":[],"next_cursor":"next"}' });
  const { exit, stdout, stderr } = await adrelay("dead", "list");
  expect({ exit, stdout }).toEqual({ exit: 0, stdout: "" });
  expect(stderr).toBe(
    "No dead letters on this page.\nFor the next page add --cursor next, for all pages --all\n",
  );
});

test("--json prints an answer byte for byte, including unknown members", async () => {
  const odd = `{ "replays" : [], "more":"\\u00e9" }`;
  api.disturb = () => ({ raw: odd });
  expect(await adrelay("replays", "list", "--json")).toEqual({ exit: 0, stdout: `${odd}\n`, stderr: "" });
});

test("watching a completed replay ends with 0, watching a cancelled one with 1", async () => {
  const [watched, cancelled] = [replay(), replay({ state: "cancelled" })];
  for (const one of [watched, cancelled]) {
    api.replays.set(one.replay_id, one);
  }
  const done = await adrelay("replays", "show", watched.replay_id, "--watch");
  expect(done).toMatchObject({ exit: 0, stderr: "2 of 4 replayed\n4 of 4 replayed\n" });
  expect(done.stdout).toMatch(/^state +completed$/m);
  expect((await adrelay("replays", "show", cancelled.replay_id, "--watch")).exit).toBe(1);
});

test("a look-up shows the turn that is open, and none otherwise", async () => {
  const one = letter({ state: "awaiting", turn: { dialect: "messages", steps: 2 } });
  const other = letter();
  api.letters.set(one.ad_response_id, one);
  api.letters.set(other.ad_response_id, other);
  const { stdout } = await adrelay("lookup", one.ad_response_id);
  expect(stdout).toMatch(/^turn +open in the model proxy \(messages, step 2\)$/m);
  expect((await adrelay("lookup", other.ad_response_id)).stdout).not.toMatch(/^turn/m);
});

test("control characters in a provider's error don't reach the terminal", async () => {
  const one = letter({ provider_error: "\u001b[2J\u202egone" });
  api.letters.set(one.ad_response_id, one);
  const { stdout } = await adrelay("lookup", one.ad_response_id);
  expect(stdout).toContain("[2J");
  expect([...stdout].filter((char) => char === "\u001b" || char === "\u202e")).toEqual([]);
});

test("--no-wait starts a replay and returns, and --json prints only the replay", async () => {
  addLetters(4);
  const { exit, stdout } = await adrelay("dead", "replay", "--all", "--yes", "--no-wait", "--json");
  expect(exit).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ state: "running", matched: 4 });
});

test("watching a replay survives a short absence of the gateway", async () => {
  addLetters(4);
  let reads = 0;
  api.disturb = ({ method, path }) => {
    reads += method === "GET" && path.startsWith("/replays/") ? 1 : 0;
    return reads === 2 ? "cut" : reads === 3 ? "unavailable" : undefined;
  };
  expect((await adrelay("dead", "replay", "--all", "--yes")).exit).toBe(0);
});

test("at a terminal a bulk replay asks for confirmation and shows a progress bar", async () => {
  addLetters(4);
  const yes = await atTerminal("y\n", "dead", "replay", "--all");
  expect(yes.exit).toBe(0);
  expect(yes.stderr).toContain("Replay all 4 dead letters at 100 per second? [y/N]");
  expect(yes.stderr).toContain("4 of 4");
  expect(yes.stdout).toContain("\u001b[1m");
});

test("the question of a bulk change repeats the filter", async () => {
  addLetters(4);
  const filter = ["--publisher", "acme", "--reason", "http_400", "--code", "campaign_ended"];
  const until = ["--until", "2026-11-28T09:00"];
  const replayed = await atTerminal("n\n", "dead", "replay", ...filter, ...until, "--rate", "7");
  expect(replayed.stderr).toContain(
    "Replay 4 dead letters (publisher=acme reason=http_400 code=campaign_ended until=2026-11-28T09:00:00.000Z) at 7 per second? [y/N]",
  );
  const discarded = await atTerminal("n\n", "dead", "discard", ...filter, "--why", "old");
  expect(discarded.stderr).toContain(
    "Discard 4 dead letters (publisher=acme reason=http_400 code=campaign_ended)? They will never be delivered. [y/N]",
  );
  const all = await atTerminal("n\n", "dead", "discard", "--all", "--why", "old");
  expect(all.stderr).toContain("Discard all 4 dead letters? They will never be delivered. [y/N]");
  expect(api.calls.filter(({ body }) => body !== undefined && Object(body).dry_run !== true)).toEqual([]);
});

test("a discard of queued ones with unknown ids counts, asks, and covers only these", async () => {
  addLetters(4);
  const asked = await atTerminal(
    "n\n",
    "queued",
    "discard",
    "--unknown",
    "--publisher",
    "acme",
    "--why",
    "x",
  );
  expect(asked.stderr).toContain(
    "Discard 4 queued acknowledgments (publisher=acme unknown=true)? They will never be delivered. [y/N]",
  );
  const done = await adrelay("queued", "discard", "--unknown", "--why", "invented", "--yes");
  expect(done).toMatchObject({ exit: 0, stderr: "4 of 4 discarded\n" });
  expect(
    api.calls.filter(({ path, body }) => path === "/discards" && body !== undefined).slice(-2),
  ).toMatchObject([
    { body: { of: "queued", unknown: true, dry_run: true } },
    { body: { of: "queued", unknown: true, why: "invented", until: COUNTED_UNTIL } },
  ]);
  const some = { dry_run: true, matched: 4, complete: false, until: COUNTED_UNTIL };
  api.disturb = () => ({ raw: JSON.stringify(some) });
  const counted = await adrelay("queued", "discard", "--all", "--dry-run");
  expect(counted.stdout).toBe("at least 4 queued acknowledgments match\n");
});

test("a discard of queued ones asks and starts if the count was cut short before it found one", async () => {
  const counted = JSON.stringify({ dry_run: true, matched: 0, complete: false, until: COUNTED_UNTIL });
  api.disturb = ({ body }) => (Object(body).dry_run === true ? { raw: counted } : undefined);
  const words = ["queued", "discard", "--unknown", "--why", "invented"];
  const dry = await adrelay(...words, "--dry-run");
  expect(dry.stdout).toBe("an unknown number of queued acknowledgments match\n");
  expect((await atTerminal("n\n", ...words)).stderr).toContain(
    "Discard an unknown number of queued acknowledgments (unknown=true)? They will never be delivered. [y/N]",
  );
  api.calls.length = 0;
  expect(await adrelay(...words, "--yes")).toMatchObject({ exit: 0, stderr: "0 discarded\n" });
  expect(api.calls.filter(({ method }) => method === "POST")).toMatchObject([
    { path: "/discards", body: { dry_run: true } },
    { path: "/discards", body: { of: "queued", unknown: true, why: "invented", until: COUNTED_UNTIL } },
  ]);
});

test("a list of unknown ids asks for these alone", async () => {
  addLetters(1);
  await adrelay("queued", "list", "--unknown");
  await adrelay("dead", "list", "--unknown");
  expect(api.calls.map(({ query }) => query)).toMatchObject([
    { state: "queued", unknown: "true" },
    { state: "dead", unknown: "true" },
  ]);
});

test("a bulk discard covers only what was counted for its question", async () => {
  addLetters(4);
  const done = await adrelay("dead", "discard", "--reason", "http_400", "--why", " old ", "--yes");
  expect(done).toMatchObject({ exit: 0, stderr: "4 of 4 discarded\n" });
  const started = api.calls.find(({ body }) => body !== undefined && Object(body).dry_run !== true);
  expect(started).toMatchObject({
    path: "/discards",
    body: { reason: "http_400", why: "old", until: COUNTED_UNTIL },
  });
});

test("a replay tells what became of its letters, and waits until all have ended", async () => {
  const outcomes = { delivered: 1, refused: 1, discarded: 0, dead: { http_404: 1, http_422: 2 }, waiting: 1 };
  const one = replay({ matched: 6, replayed: 6, state: "completed", outcomes });
  api.replays.set(one.replay_id, one);
  let reads = 0;
  api.disturb = () => {
    reads += 1;
    const later = { ...one, outcomes: { ...outcomes, delivered: 2, waiting: 0 } };
    return { raw: JSON.stringify(reads < 3 ? one : later) };
  };
  const { exit, stdout, stderr } = await adrelay("replays", "show", one.replay_id, "--watch");
  // More than half of them failed again.
  expect(exit).toBe(1);
  expect(stderr).toBe(
    "6 of 6 replayed: 1 delivered, 3 dead again (http_422 2, http_404 1), 1 refused, 1 waiting\n" +
      "6 of 6 replayed: 2 delivered, 3 dead again (http_422 2, http_404 1), 1 refused, 0 waiting\n" +
      "3 of 6 are dead again, and 1 was refused: the cause isn't fixed.\n",
  );
  for (const line of [/^delivered +2$/m, /^dead again +3 \(http_422 2, http_404 1\)$/m, /^waiting +0$/m]) {
    expect(stdout).toMatch(line);
  }
});

test("a replay that stopped by itself ends with 1 and says why", async () => {
  const outcomes = { delivered: 5, refused: 0, discarded: 0, dead: { http_422: 15 }, waiting: 0 };
  const one = replay({ matched: 60, replayed: 20, state: "stopped", outcomes });
  api.replays.set(one.replay_id, one);
  const { exit, stdout, stderr } = await adrelay("replays", "show", one.replay_id, "--watch");
  expect(exit).toBe(1);
  expect(stdout).toMatch(/^state +stopped: most failed again$/m);
  expect(stdout).toMatch(/^stops +once 20 have ended, if half of them or more have failed again$/m);
  expect(stderr).toMatch(/^15 of 20 are dead again: the cause isn't fixed\. The others stay dead\.$/m);
  expect((await adrelay("replays", "list")).stdout).toMatch(/stopped +20 of 60 +5 +15 +0 +reason=http_400/);
});

const NO_OUTCOMES = { delivered: 0, refused: 0, discarded: 0, dead: {}, waiting: 0 };

test.each([
  [{ dead: { http_422: 10 } }, 1, "All 10 are dead again: the cause isn't fixed."],
  [{ dead: { http_422: 5 }, delivered: 5 }, 1, "5 of 10 are dead again: the cause isn't fixed."],
  [{ refused: 10 }, 1, "All 10 were refused: the provider doesn't want them."],
  [{ dead: { http_422: 4 }, delivered: 6 }, 0, undefined],
  [{ delivered: 10 }, 0, undefined],
])("a short replay with the outcomes %j ends with %i", async (some, exit, last) => {
  const outcomes = { ...NO_OUTCOMES, ...some };
  const one = replay({ matched: 10, replayed: 10, state: "completed", outcomes });
  api.replays.set(one.replay_id, one);
  const ended = await adrelay("replays", "show", one.replay_id, "--watch");
  expect(ended.exit).toBe(exit);
  const lines = ended.stderr.trimEnd().split("\n");
  expect(lines[1]).toBe(last);
});

test("before a replay the command says if it is too short to stop, and which circuit breaker is open", async () => {
  addLetters(4);
  const notes = async (...words: string[]) => {
    const { stderr } = await atTerminal("n\n", "dead", "replay", ...words);
    return stripVTControlCharacters(stderr)
      .split("\n")
      .filter((line) => /circuit|So few/.test(line));
  };
  const few = "So few can't stop by themselves if they fail again: that needs more than 20 (--stop-after).";
  const open = "The circuit breaker of https://ads.example is open (outage): these will wait.";
  expect(await notes("--all")).toEqual([few, open]);
  expect(await notes("--all", "--stop-after", "3")).toEqual([open]);
  expect(await notes("--all", "--stop-at-share", "never")).toEqual([open]);
  const before = api.stats;
  const [provider] = before.providers;
  const other = { provider: "https://other.example", circuit: "closed", reason: null, publishers: ["other"] };
  api.stats = { ...before, providers: [provider, { ...provider, ...other }] } as typeof before;
  expect(await notes("--all", "--stop-after", "3")).toEqual([
    "The circuit breaker of https://ads.example is open (outage): those of acme, globe will wait.",
  ]);
  expect(await notes("--publisher", "other", "--stop-after", "3")).toEqual([]);
  api.stats = before;
});

test("a completed change that left some out says that they were no longer dead", async () => {
  const one = replay({ matched: 8, replayed: 4, state: "completed" });
  api.replays.set(one.replay_id, one);
  const shown = await adrelay("replays", "show", one.replay_id);
  expect(shown.stdout).toMatch(/^left out +4 were no longer dead when it came to them$/m);
  const all = replay({ matched: 8, replayed: 8, state: "completed" });
  api.replays.set(all.replay_id, all);
  expect((await adrelay("replays", "show", all.replay_id)).stdout).not.toContain("left out");
});

test("behind the progress bar are the outcomes", async () => {
  const outcomes = { ...NO_OUTCOMES, delivered: 1, dead: { http_422: 3 } };
  const one = replay({ matched: 4, replayed: 4, state: "completed", outcomes });
  api.replays.set(one.replay_id, one);
  const { stderr } = await atTerminal("", "replays", "show", one.replay_id, "--watch");
  expect(stripVTControlCharacters(stderr)).toContain("100% | 4 of 4: 1 delivered, 3 dead again, 0 waiting");
});

test.each([
  ["a worker that is silent", -9000, "No worker has been seen for 9 s: bulk replays and discards need one."],
  ["a worker that stood still for a moment", -5000, undefined],
])("watching a replay that stands still tells of %s", async (_what, agoMs, line) => {
  const one = replay();
  api.replays.set(one.replay_id, one);
  api.replayStep = 0;
  const before = api.stats;
  const [worker] = before.processes ?? [];
  const seen_at = new Date(Date.parse(before.at) + agoMs).toISOString();
  api.stats = { ...before, processes: [{ ...worker, seen_at }] } as typeof before;
  api.disturb = ({ path }) => {
    const looks = api.calls.filter((call) => call.path === "/stats").length;
    api.replayStep = path === "/stats" || looks > 0 ? 4 : 0;
    return undefined;
  };
  const { exit, stderr } = await adrelay("replays", "show", one.replay_id, "--watch");
  expect(exit).toBe(0);
  expect(stderr.split("\n").find((text) => text.startsWith("No worker"))).toBe(line);
  api.stats = before;
});

test("a replay of ids tells what became of each", async () => {
  const ids = addLetters(3);
  const outcome = (id: string) =>
    [
      letter({ ad_response_id: id, state: "delivered" }),
      letter({ ad_response_id: id, reason: "http_418", last_code: "http_418", provider_error: "teapot" }),
      letter({ ad_response_id: id, state: "refused" }),
    ][ids.indexOf(id)];
  for (const id of ids) {
    api.letters.set(id, letter({ ad_response_id: id, state: "queued" }));
  }
  api.disturb = ({ method, path }) => {
    const id = path.split("/")[2] ?? "";
    const reads = api.calls.filter((call) => call.method === "GET" && call.path === path).length;
    return method === "GET" && reads > 1 ? { raw: JSON.stringify(outcome(id)) } : undefined;
  };
  const { exit, stdout, stderr } = await adrelay("dead", "replay", ...ids);
  expect([exit, stderr]).toEqual([1, ""]);
  expect(stdout).toBe(`${ids[0]}  delivered\n${ids[1]}  dead again (http_418, teapot)\n${ids[2]}  refused\n`);
  const unwatched = await adrelay("dead", "replay", String(ids[0]), "--no-wait");
  expect(unwatched).toEqual({ exit: 0, stdout: `${ids[0]}  queued\n`, stderr: "" });
});

test("a replay of ids survives a short absence of the gateway, and names all ids that it can't tell of", async () => {
  const ids = addLetters(3);
  const isLookUp = ({ method }: { readonly method: string }) => method === "GET";
  for (const id of ids) {
    api.letters.set(id, letter({ ad_response_id: id, state: "delivered" }));
  }
  api.disturb = (call) =>
    isLookUp(call) && api.calls.filter(isLookUp).length === 1 ? "unavailable" : undefined;
  const lines = ids.map((id) => `${id}  delivered\n`);
  expect(await adrelay("dead", "replay", ...ids)).toEqual({ exit: 0, stdout: lines.join(""), stderr: "" });
  api.disturb = (call) => (isLookUp(call) && call.path.endsWith(String(ids[1])) ? "html" : undefined);
  const { exit, stdout, stderr } = await adrelay("dead", "replay", ...ids);
  expect({ exit, stdout }).toEqual({ exit: 3, stdout: lines[0] });
  for (const id of ids.slice(1)) {
    expect(stderr).toContain(`${id} is back on the queue. What became of it: adrelay lookup ${id}\n`);
  }
});

test("a replay of an id that is still queued after a few seconds says why it waits", async () => {
  const one = letter({ state: "queued", last_code: "http_503", failed_attempts: 1 });
  api.letters.set(one.ad_response_id, one);
  const { exit, stdout, stderr } = await adrelay("dead", "replay", one.ad_response_id);
  expect({ exit, stdout }).toEqual({ exit: 0, stdout: `${one.ad_response_id}  waits (http_503)\n` });
  expect(stderr).toBe(
    "The circuit breaker of https://ads.example is open (outage): these will wait.\n" +
      `See later: adrelay lookup ${one.ad_response_id}\n`,
  );
});

test("a discard without a reason asks for it at a terminal", async () => {
  const [id = ""] = addLetters(2);
  for (const words of [[id], ["--all"]]) {
    api.calls.length = 0;
    const done = await runHere(["--url", api.url, "dead", "discard", ...words], { typed: ["old\n", "y\n"] });
    expect(done.exit).toBe(0);
    expect(done.stderr).toContain("Why? The audit keeps it:");
    const changes = api.calls.filter(({ body }) => body !== undefined && Object(body).dry_run !== true);
    expect(changes.map(({ body }) => Object(body).reason ?? Object(body).why)).toEqual(["old"]);
  }
  api.calls.length = 0;
  expect((await atTerminal("\n", "dead", "discard", id)).exit).toBe(2);
  expect((await atTerminal("\u0003", "dead", "discard", id)).exit).toBe(130);
  expect(api.calls).toEqual([]);
});

test("an erasure of ids asks for a rewrite also if the last id is unknown", async () => {
  const erased = { erased: 1, without_text: 0, under_way: 0, state: "discarded", next_cursor: null };
  api.disturb = () => (api.calls.length > 1 ? "unknown_id" : { raw: JSON.stringify(erased) });
  const [id, unknown] = [unknownId(), unknownId()];
  const ended = await adrelay("erase", id, unknown, "--rewrite", "--why", "the user asked", "--yes");
  expect(ended).toMatchObject({ exit: 1, stdout: `${id}  erased, discarded\n` });
  expect(api.calls).toMatchObject([
    { path: "/erasures", body: { ad_response_id: id, rewrite: true } },
    { path: "/erasures", body: { ad_response_id: unknown, rewrite: true } },
  ]);
});

const CHANGES_OF_IDS = [
  [["dead", "discard"], ["--why", "old", "--yes"], "discarded", "discarded"],
  [["dead", "replay"], ["--no-wait"], "queued", "queued"],
  [["erase"], ["--why", "old", "--yes"], "discarded", "erased, discarded"],
] as const;
const ERASED = {
  raw: JSON.stringify({ erased: 1, without_text: 0, under_way: 0, state: "discarded", next_cursor: null }),
};

/** Ids of acknowledgments that have this state after the change. */
function addChanged(count: number, state: AcknowledgmentDetail["state"]): string[] {
  const ids = addLetters(count);
  for (const id of ids) {
    api.letters.set(id, letter({ ad_response_id: id, state }));
  }
  return ids;
}

/** The id that a call changes. */
const changedId = ({ path, body }: { readonly path: string; readonly body: unknown }): string =>
  Object(body).ad_response_id ?? path.split("/")[2];

test.each(CHANGES_OF_IDS)(
  "%j of ids waits out a 503, and goes on with the same id",
  async (command, options, state, done) => {
    const ids = addChanged(3, state);
    const answers = ["busy", undefined, "cut", "unavailable"] as const;
    api.disturb = ({ path }) => answers[api.calls.length - 1] ?? (path === "/erasures" ? ERASED : undefined);
    const { exit, stdout, stderr } = await adrelay(...command, ...ids, ...options);
    expect({ exit, stdout, stderr }).toEqual({
      exit: 0,
      stdout: ids.map((id) => `${id}  ${done}\n`).join(""),
      stderr: "The gateway is unavailable. Trying again for 30 s.\n".repeat(2),
    });
    const changes = api.calls.filter(({ method }) => method === "POST");
    expect(changes.map((call) => ids.indexOf(changedId(call)))).toEqual([0, 0, 1, 1, 1, 2]);
  },
);

test.each(CHANGES_OF_IDS)(
  "%j of ids that gives up says what was done and what wasn't",
  async (command, options, state, done) => {
    const ids = addChanged(4, state);
    api.disturb = (call) =>
      changedId(call) === ids[1] ? "unavailable" : call.path === "/erasures" ? ERASED : undefined;
    const words = ["--url", api.url, ...command, ...ids, ...options];
    const { exit, stdout, stderr } = await runHere(words, { patienceMs: 700 });
    expect({ exit, stdout }).toEqual({ exit: 3, stdout: `${ids[0]}  ${done}\n` });
    const verb = command[0] === "erase" ? "erased" : "changed";
    expect(stderr).toContain(`with \`adrelay lookup ${ids[1]}\``);
    expect(stderr).toContain(
      `\n1 of 4 were ${verb}.\nNot known: ${ids[1]}\nNot ${verb}: ${ids[2]} ${ids[3]}\n`,
    );
    expect(api.calls.filter((call) => changedId(call) === ids[1])).toHaveLength(2);
  },
);

test.each([
  ["discard", ["--why", "old", "--yes"], "discarded", 0],
  ["discard", ["--why", "old", "--yes"], "expired", 1],
  ["replay", ["--no-wait"], "delivered", 0],
  ["replay", ["--no-wait"], "discarded", 1],
] as const)(
  "a %s with %j that is refused after a 503 was made only if the state %s says so",
  async (action, options, state, exit) => {
    const id = unknownId();
    api.letters.set(id, letter({ ad_response_id: id, state }));
    const answers = ["busy", "not_dead"] as const;
    api.disturb = () => answers[api.calls.length - 1];
    const ended = await adrelay("dead", action, id, ...options);
    expect(ended.exit).toBe(exit);
    expect(ended.stdout).toBe(exit === 0 ? `${id}  ${state}\n` : "");
    expect(ended.stderr.includes(`${id} was not changed.`)).toBe(exit === 1);
  },
);

test("dead letters of all pages are counted by publisher, reason and code", async () => {
  const page = (codes: readonly (string | null)[], next_cursor: string | null) => ({
    raw: JSON.stringify({
      acknowledgments: codes.map((provider_error) => letter({ provider_error })),
      next_cursor,
    }),
  });
  api.disturb = ({ query }) =>
    query["cursor"] === undefined ? page(["late", "ended", null], "next") : page(["ended"], null);
  const { exit, stdout } = await adrelay("dead", "list", "--count", "--reason", "http_400");
  expect(exit).toBe(0);
  const rows = stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ +/));
  expect(rows).toEqual([
    ["PUBLISHER", "REASON", "CODE", "COUNT"],
    ["acme", "http_400", "ended", "2"],
    ["acme", "http_400", "late", "1"],
    ["acme", "http_400", "-", "1"],
  ]);
  expect(api.calls.map(({ query }) => query["reason"])).toEqual(["http_400", "http_400"]);
});

test("the share at which a replay stops is sent as it was given", async () => {
  addLetters(4);
  const sent = async (...words: string[]) => {
    api.calls.length = 0;
    await adrelay("dead", "replay", "--all", "--yes", "--no-wait", ...words);
    return api.calls.findLast(({ path }) => path.endsWith("/replays"))?.body;
  };
  expect(await sent("--stop-at-share", "0.25", "--stop-after", "7")).toEqual({
    stop_at_share: 0.25,
    stop_after: 7,
  });
  expect(await sent("--stop-at-share", "never")).toEqual({ stop_at_share: null });
  expect(await sent()).toEqual({});
});

test("if no letter has a code, the codes that there are get named", async () => {
  const one = letter({ provider_error: "campaign_ended" });
  api.letters.set(one.ad_response_id, one);
  api.disturb = ({ query }) => (query["code"] === undefined ? undefined : { raw: NO_PAGE });
  const { exit, stderr } = await adrelay("dead", "list", "--code", "campain_ended");
  expect({ exit, stderr }).toEqual({
    exit: 0,
    stderr: "No dead letters match.\nThe latest dead letters have the codes campaign_ended.\n",
  });
});

test.each([
  ["n\n", 1],
  ["\n", 1],
  ["\u0003", 130],
  ["\u0004", 1],
] as const)("the answer %j at a terminal changes nothing", async (input, exit) => {
  const [id = ""] = addLetters(2);
  expect((await atTerminal(input, "dead", "replay", "--all")).exit).toBe(exit);
  expect((await atTerminal(input, "dead", "discard", id, "--reason", "spoilt")).exit).toBe(exit);
  expect(api.calls.filter(({ body }) => body !== undefined && Object(body).dry_run !== true)).toEqual([]);
});

const batch = (underWay: number, next: string | null) => ({
  raw: JSON.stringify({
    from: "gone",
    to: "acme",
    adopted: { dead: 1, queued: 2, awaiting: 3 },
    under_way: underWay,
    next_cursor: next,
  }),
});

test("an adoption calls for batch after batch, and says if it was cut short or an attempt holds some", async () => {
  api.disturb = ({ body }) => ("cursor" in Object(body) ? batch(1, null) : batch(0, "next"));
  const held = await adrelay("publishers", "adopt", "gone", "acme", "--yes");
  expect(held).toMatchObject({ exit: 1, stderr: expect.stringContaining("1 are being attempted now") });
  expect(held.stdout).toBe("acme has adopted 4 queued, 2 dead and 6 awaiting from gone\n");
  expect(api.calls.map(({ path, body }) => [path, body])).toEqual([
    ["/publishers/gone/adopt", { to: "acme" }],
    ["/publishers/gone/adopt", { to: "acme", cursor: "next" }],
  ]);
  api.calls.length = 0;
  api.disturb = ({ body }) => ("cursor" in Object(body) ? "unavailable" : batch(0, "next"));
  const words = ["--url", api.url, "publishers", "adopt", "gone", "acme", "--yes"];
  const cut = await runHere(words, { patienceMs: 700 });
  expect(cut).toMatchObject({ exit: 3, stderr: expect.stringContaining("run the command again") });
  // The first batch, the second one, and its repeat.
  expect(api.calls).toHaveLength(3);
});

test("an adoption repeats a batch and a count that got a 503, after the time that the answer names", async () => {
  const times: number[] = [];
  const answers = ["busy", batch(0, "next"), "cut", batch(0, null), "unavailable"] as const;
  api.disturb = () => {
    times.push(performance.now());
    return answers[times.length - 1];
  };
  const adopted = await adrelay("publishers", "adopt", "gone", "acme", "--yes");
  const waited = "The gateway is unavailable. Trying again for 30 s.\n";
  expect(adopted).toEqual({
    exit: 0,
    stdout: "acme has adopted 4 queued, 2 dead and 6 awaiting from gone\n",
    stderr: waited.repeat(3),
  });
  expect(api.calls.map(({ path, body }) => [path, Object(body).cursor])).toEqual([
    ["/publishers/gone/adopt", undefined],
    ["/publishers/gone/adopt", undefined],
    ["/publishers/gone/adopt", "next"],
    ["/publishers/gone/adopt", "next"],
    ["/stats", undefined],
    ["/stats", undefined],
  ]);
  const [first = 0, second = 0] = times;
  expect(second - first).toBeGreaterThan(950);
});

test("an adoption that is refused halfway says that what was adopted stays so", async () => {
  api.disturb = ({ body }) => ("cursor" in Object(body) ? "wrong_value" : batch(0, "next"));
  const { exit, stderr } = await adrelay("publishers", "adopt", "gone", "acme", "--yes");
  expect({ exit, note: stderr.split("\n").at(-2) }).toEqual({
    exit: 1,
    note: "What was adopted so far stays so.",
  });
  api.disturb = () => "wrong_value";
  const atOnce = await adrelay("publishers", "adopt", "acme", "acme", "--yes");
  expect(atOnce).toMatchObject({ exit: 2, stderr: expect.not.stringContaining("stays so") });
});

test("an erasure of a session repeats a step that got a 503", async () => {
  const step = (next_cursor: string | null) => ({
    raw: JSON.stringify({ erased: 2, without_text: 0, under_way: 0, state: null, next_cursor }),
  });
  const answers = [step("next"), "unavailable", step(null)] as const;
  api.disturb = () => answers[api.calls.length - 1];
  const words = ["erase", "--session", "s1", "--why", "the user asked", "--yes"];
  const { exit, stdout, stderr } = await adrelay(...words);
  expect({ exit, stdout, stderr }).toEqual({
    exit: 0,
    stdout: "4 erased, 0 without a text, 0 under way\n",
    stderr: "The gateway is unavailable. Trying again for 30 s.\n",
  });
  const sent = { session_id: "s1", reason: "the user asked", rewrite: false };
  expect(api.calls.map(({ body }) => body)).toEqual([
    sent,
    { ...sent, cursor: "next" },
    { ...sent, cursor: "next" },
  ]);
});

test("an adoption begins again if the publisher has some left, and says if it still has", async () => {
  const withLeft = (dead: number) => ({
    raw: JSON.stringify({
      ...api.stats,
      gone_publishers: [{ publisher: "gone", dead, queued: 0, awaiting: 1 }],
    }),
  });
  const adoptions = () => api.calls.filter(({ path }) => path === "/publishers/gone/adopt").length;
  api.disturb = ({ path }) => {
    const isOver = path === "/stats" && adoptions() === 2;
    return path === "/stats" ? (isOver ? undefined : withLeft(2)) : batch(0, null);
  };
  const again = await adrelay("publishers", "adopt", "gone", "acme", "--yes");
  expect(again).toMatchObject({
    exit: 0,
    stderr: "",
    stdout: "acme has adopted 4 queued, 2 dead and 6 awaiting from gone\n",
  });
  api.calls.length = 0;
  api.disturb = ({ path }) => (path === "/stats" ? withLeft(4) : batch(0, null));
  const left = await adrelay("publishers", "adopt", "gone", "acme", "--yes");
  expect(left).toMatchObject({ exit: 1, stderr: expect.stringContaining("gone still has 5") });
  expect(adoptions()).toBe(3);
});
