/** The command with a real relay: list, replay, discard and audit dead letters. */
import {
  acknowledgmentPageSchema,
  replayListSchema,
  replayViewSchema,
  type Stats,
  statsSchema,
} from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  type EndedCommand,
  eventually,
  filled,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startAdrelay,
  startRelayStack,
  startScriptedProvider,
  unfilled,
  unknownId,
} from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

const TOKEN = "token-of-alice-0";
const ACK_DEADLINE_MS = 5000;

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  const env = { ADMIN_TOKENS: `alice:${TOKEN}`, ACK_DEADLINE_MS: String(ACK_DEADLINE_MS) };
  stack = await startRelayStack({ redis, providerUrl: provider.url, env });
  caller = relayCaller(stack.gatewayUrl);
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
});
beforeEach(() => {
  provider.onStart(() => filled());
  provider.onAcknowledge(() => acknowledged());
});

const start = (...words: string[]) =>
  startAdrelay(words, { env: { ADRELAY_URL: stack.gatewayOpsUrl, ADRELAY_ADMIN_TOKEN: TOKEN } });
const adrelay = (...words: string[]): Promise<EndedCommand> => start(...words).ended;

async function ask(path: string): Promise<string> {
  const headers = { Authorization: `Bearer ${TOKEN}` };
  return (await fetch(`${stack.gatewayOpsUrl}/admin/v1${path}`, { headers })).text();
}

const becomes = (id: string, state: string) =>
  eventually(async () => expect((await caller.lookUp(id)).body["state"]).toBe(state), 10_000);

async function loadStats(): Promise<Stats> {
  return statsSchema.parse(JSON.parse(await ask("/stats")));
}

/** Acknowledges new ids while the provider answers with `status`, and waits until all are dead letters. */
async function deadLetters(count: number, status = 422): Promise<string[]> {
  provider.onAcknowledge(() => ({ kind: "answer", status }));
  const ids = Array.from({ length: count }, () => unknownId());
  const rest = ids.values();
  const lane = async () => {
    for (const id of rest) {
      await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
    }
  };
  await Promise.all(Array.from({ length: Math.min(16, count) }, lane));
  await eventually(async () => {
    const { states, dead_letters } = await loadStats();
    const dead = dead_letters.find(({ reason }) => reason === `http_${status}`);
    expect([states.queued, dead?.count ?? 0]).toEqual([0, expect.any(Number)]);
    expect(dead?.count).toBeGreaterThanOrEqual(count);
  }, 20_000);
  provider.onAcknowledge(() => acknowledged());
  return ids;
}

/** The ids in the first column of a table. */
const idsIn = (table: string) =>
  table
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => line.split(" ")[0]);

test("dead letters are listed page by page with a filter, and shown one by one", async () => {
  const ids = await deadLetters(5, 413);
  const filter = ["--reason", "http_413", "--publisher", "default", "--since", "1h"];
  const seen: (string | undefined)[] = [];
  let cursor: string[] = [];
  do {
    const page = await adrelay("dead", "list", ...filter, "--limit", "2", ...cursor);
    expect(page.exit).toBe(0);
    seen.push(...idsIn(page.stdout));
    const next = /--cursor (\S+),/.exec(page.stderr)?.[1];
    cursor = next === undefined ? [] : ["--cursor", next];
  } while (cursor.length > 0);
  expect(seen.toSorted()).toEqual(ids.toSorted());
  const [none, shown] = await Promise.all([
    adrelay("dead", "list", "--reason", "http_413", "--until", "1h"),
    adrelay("dead", "show", String(ids[0])),
  ]);
  expect(none).toEqual({ exit: 0, stdout: "", stderr: "No dead letters match.\n" });
  expect(shown).toMatchObject({ exit: 0, stderr: "" });
  for (const line of [/^reason +http_413: .+$/m, /^attempts +1$/m, /^\S+Z +die +http_413 +\d+$/m]) {
    expect(shown.stdout).toMatch(line);
  }
});

test("a filter that the gateway refuses ends with 2 and lists its faults", async () => {
  expect(await adrelay("dead", "list", "--reason", "because", "--cursor", "rubbish")).toMatchObject({
    exit: 2,
    stdout: "",
    stderr: expect.stringMatching(/reason: .+cursor: is not a cursor of this list/),
  });
});

test("a replay of ids requeues the dead letters and says why it refuses the others", async () => {
  const [dead = ""] = await deadLetters(1);
  provider.onAcknowledge(() => ({ kind: "answer", status: 406 }));
  const refused = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(refused, "text", { headers: { Prefer: "wait=20" } });
  provider.onAcknowledge(() => acknowledged());
  const unknown = unknownId();
  const { exit, stdout, stderr } = await adrelay("dead", "replay", refused, dead, unknown);
  expect({ exit, stdout }).toEqual({ exit: 1, stdout: `${dead}  delivered\n` });
  expect(stderr).toContain("refused it with 406: a refused acknowledgment is never replayed");
  expect(stderr).toContain(`${refused} was not changed`);
  expect(stderr).toContain(`${unknown} was not changed`);
  await becomes(dead, "delivered");
  expect((await adrelay("dead", "replay", dead)).stderr).toContain("this acknowledgment is delivered");
  expect(await adrelay("dead", "show", dead)).toMatchObject({
    exit: 1,
    stderr: "adrelay: this is not a dead letter: its state is delivered\n",
  });
});

test("hundreds of dead letters are listed, counted, and replayed in bulk only with --yes", async () => {
  const ids = await deadLetters(505, 404);
  const filter = ["--reason", "http_404"];
  const [listed, dry, unconfirmed] = await Promise.all([
    adrelay("dead", "list", "--all", "--json", ...filter),
    adrelay("dead", "replay", ...filter, "--dry-run"),
    adrelay("dead", "replay", ...filter),
  ]);
  const pages = listed.stdout
    .trim()
    .split("\n")
    .map((line) => acknowledgmentPageSchema.parse(JSON.parse(line)));
  const found = pages.flatMap(({ acknowledgments }) => acknowledgments.map((one) => one.ad_response_id));
  expect(found.toSorted()).toEqual(ids.toSorted());
  expect(dry).toEqual({ exit: 0, stdout: "505 dead letters match\n", stderr: "" });
  expect(unconfirmed).toMatchObject({ exit: 2, stdout: "", stderr: expect.stringContaining("--yes") });
  expect(replayListSchema.parse(JSON.parse(await ask("/replays")))).toEqual({ replays: [] });
  const done = await adrelay("dead", "replay", ...filter, "--rate", "300", "--yes");
  expect(done.exit).toBe(0);
  expect(done.stdout).toMatch(/^state +completed\nreplayed +505 of 505 put back on the queue\n/m);
  expect(done.stderr).toMatch(/^(\d+ of 505 replayed: \d+ delivered, 0 dead again, \d+ waiting\n)+$/);
  expect(done.stderr).toMatch(/^505 of 505 replayed: 505 delivered, 0 dead again, 0 waiting\n$/m);
  await eventually(async () => expect((await loadStats()).states.queued).toBe(0), 20_000);
  await Promise.all([ids.at(0), ids.at(-1)].map((id) => becomes(String(id), "delivered")));
  const nothing = await adrelay("dead", "replay", ...filter, "--yes");
  expect(nothing).toEqual({ exit: 0, stdout: "0 dead letters match\n", stderr: "" });
});

test("Ctrl-C leaves a bulk replay running, and replays cancel ends it", async () => {
  // At one per second it runs longer than the next few commands, even on a busy machine.
  await deadLetters(120, 400);
  const { child, output, ended } = start("dead", "replay", "--reason", "http_400", "--rate", "1", "--yes");
  await eventually(() => expect(output.stderr).toContain("of 120 replayed"), 20_000);
  child.kill("SIGINT");
  const { exit, stdout, stderr } = await ended;
  expect({ exit, stdout }).toEqual({ exit: 130, stdout: "" });
  const id = /^Cancel it: adrelay replays cancel (\S+)$/m.exec(stderr)?.[1] ?? "";
  const running = await adrelay("replays", "show", id, "--json");
  expect(replayViewSchema.parse(JSON.parse(running.stdout))).toMatchObject({
    state: "running",
    matched: 120,
  });
  const cancelled = await adrelay("replays", "cancel", id);
  expect(cancelled).toMatchObject({ exit: 0, stdout: expect.stringMatching(/^state +cancelled$/m) });
  expect((await adrelay("replays", "list")).stdout).toMatch(
    new RegExp(`^${id}  cancelled +\\d+ of 120 +\\d+ +0 +\\d+ +reason=http_400 +alice `, "m"),
  );
  const refused = await Promise.all([
    adrelay("replays", "cancel", id),
    adrelay("replays", "show", id, "--watch"),
    adrelay("replays", "show", unknownId()),
  ]);
  expect(refused.map(({ exit: code }) => code)).toEqual([1, 1, 1]);
});

test("a discard needs --yes, and the audit shows its operator and reason", async () => {
  const [id = ""] = await deadLetters(1);
  const words = ["dead", "discard", id, "--reason", "test data, gone"];
  expect((await adrelay(...words)).exit).toBe(2);
  expect(await adrelay(...words, "--yes")).toEqual({ exit: 0, stdout: `${id}  discarded\n`, stderr: "" });
  expect((await adrelay(...words, "--yes")).stderr).toContain("this acknowledgment is discarded");
  const audit = await adrelay("audit", "--limit", "1");
  expect(audit.stdout).toMatch(
    new RegExp(`  alice  127\\.0\\.0\\.1  discard +${id}  why="test data, gone" from=dead$`, "m"),
  );
  const cursor = /--cursor (\S+)$/m.exec(audit.stderr)?.[1] ?? "";
  expect((await adrelay("audit", "--cursor", cursor)).stdout).not.toContain(id);
});

test("an acknowledgment that is always answered 429 is discarded, and is gone for good", async () => {
  const id = await caller.injectUntilFilled();
  provider.onAcknowledge(({ fields }) =>
    fields["ad_response_id"] === id
      ? { kind: "answer", status: 429, headers: { "Retry-After": "1" } }
      : acknowledged(),
  );
  await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
  await eventually(() => expect(provider.acknowledgmentsOf(id).length).toBeGreaterThanOrEqual(2), 20_000);
  const words = ["dead", "discard", id, "--reason", "never taken", "--yes"];
  // An attempt may be under way.
  await eventually(async () => expect(await adrelay(...words)).toMatchObject({ exit: 0 }), 20_000);
  const posts = provider.acknowledgmentsOf(id).length;
  expect((await adrelay("lookup", id)).stdout).toMatch(/^state +discarded/m);
  const audit = await adrelay("audit", "--limit", "1");
  expect(audit.stdout).toMatch(
    new RegExp(`  alice  127\\.0\\.0\\.1  discard +${id}  why="never taken" from=queued$`, "m"),
  );
  expect((await caller.acknowledge(id, "text")).status).toBe(406);
  const others = await Promise.all([caller.injectUntilFilled(), caller.injectUntilFilled()]);
  await Promise.all(others.map((other) => caller.acknowledgeUntilAccepted(other, "text")));
  await Promise.all(others.map((other) => becomes(other, "delivered")));
  expect(provider.acknowledgmentsOf(id)).toHaveLength(posts);
  const { states, queue, providers } = await loadStats();
  expect(states.queued).toBe(0);
  expect(queue).toMatchObject({ waiting: 0, active: 0, delayed: 0 });
  expect(providers.map(({ parked }) => parked)).toEqual([0]);
});

test("--json prints the answers of the API unchanged", async () => {
  const [id = ""] = await deadLetters(1);
  const calls = new Map([
    [["dead", "list", "--limit", "3"], "/acknowledgments?state=dead&limit=3"],
    [["dead", "show", id], `/acknowledgments/${id}`],
    [["lookup", id], `/acknowledgments/${id}`],
    [["replays", "list"], "/replays"],
    [["audit", "--limit", "2"], "/audit?limit=2"],
  ]);
  const comparisons = [...calls].map(async ([words, path]) => {
    const ended = await adrelay(...words, "--json");
    expect(ended).toEqual({ exit: 0, stdout: `${await ask(path)}\n`, stderr: "" });
  });
  await Promise.all(comparisons);
  const unknown = await adrelay("lookup", unknownId(), "--json");
  expect(unknown.exit).toBe(1);
  expect(JSON.parse(unknown.stdout)).toMatchObject({ status: 404, code: "unknown_ad_response" });
});

test("lookup shows each state that an acknowledgment can have", async () => {
  const shows = async (id: string, state: string, ...more: RegExp[]) => {
    await becomes(id, state);
    const { exit, stdout } = await adrelay("lookup", id);
    expect(exit).toBe(0);
    for (const part of [new RegExp(`^state +${state}`, "m"), ...more]) {
      expect(stdout).toMatch(part);
    }
  };
  const missed = await caller.injectUntilFilled();
  // On a busy machine the deadline may pass before the command calls the gateway.
  await eventually(async () => {
    const { stdout } = await adrelay("lookup", await caller.injectUntilFilled());
    expect(stdout).toMatch(/^state +awaiting[\s\S]*^deadline .*\(in /m);
  });
  const delivered = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(delivered, "text");
  await shows(delivered, "delivered", /^verdict +ok$/m, /deliver +ok/);
  provider.onAcknowledge(() => ({ kind: "answer", status: 503 }));
  const queued = unknownId();
  await caller.acknowledgeUntilAccepted(queued, "text", { headers: { Prefer: "respond-async" } });
  await shows(queued, "queued", /^last code +http_503$/m);
  provider.onAcknowledge(() => ({ kind: "answer", status: 406 }));
  await shows(queued, "refused", /refuse +http_406/);
  const [dead = "", discarded = ""] = await deadLetters(2);
  await shows(dead, "dead", /^reason +http_422: /m);
  await adrelay("dead", "discard", discarded, "--reason", "old", "--yes");
  await shows(discarded, "discarded");
  await shows(missed, "missed");
  await stack.apps.get("worker")?.stop();
  await stack.start("worker", { DEAD_LETTER_RETENTION: "500ms" });
  await shows(dead, "expired");
  provider.onStart(() => unfilled(202));
  const { body } = await caller.inject();
  await shows(String(body["ad_response_id"]), "unacknowledgeable");
});
