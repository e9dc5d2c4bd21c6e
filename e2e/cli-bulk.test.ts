/**
 * Operators' changes of thirty dead letters of five kinds, by the command and real processes: filters, what a replay says of
 * its letters, its stop, and discards in bulk. They guard against an operator who believes that all is well.
 * A test that changes what is dead has its own stack. So some run at the same time.
 */
import { acknowledgmentPageSchema, statsSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  eventually,
  fetchLedgerMetrics,
  relayCaller,
  startAdrelay,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  TEST_ADMIN_TOKEN,
  unknownId,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, type TestContext, test } from "vitest";

const KINDS = [
  { status: 422, code: "text_too_long" },
  { status: 422, code: "campaign_ended" },
  { status: 404, code: "unknown_ad" },
  { status: 400, code: "bad_form" },
  { status: 418, code: undefined },
] as const;
const OF_EACH = 6;

type Surroundings = Awaited<ReturnType<typeof startSurroundings>>;

/** A stack of its own for one test, which ends with the test. */
async function setup({ onTestFinished }: TestContext): Promise<Surroundings> {
  const surroundings = await startSurroundings();
  onTestFinished(surroundings.stop);
  return surroundings;
}

async function startSurroundings() {
  const [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  const stack = await startRelayStack({ redis, providerUrl: provider.url });
  const caller = relayCaller(stack.gatewayUrl);
  const env = { ADRELAY_URL: stack.gatewayOpsUrl, ADRELAY_ADMIN_TOKEN: TEST_ADMIN_TOKEN };
  const begin = (...words: string[]) => startAdrelay(words, { env });
  const adrelay = (...words: string[]) => begin(...words).ended;
  const loadStates = async () =>
    statsSchema.parse(JSON.parse((await adrelay("status", "--json")).stdout)).states;
  const acknowledge = (id: string, text: string) =>
    caller.acknowledgeUntilAccepted(id, text, { headers: { Prefer: "respond-async" } });
  return {
    redis,
    provider,
    stack,
    begin,
    adrelay,
    loadStates,
    acknowledge,
    stop: async () => {
      await stack.stop();
      await Promise.all([provider.close(), redis.dispose()]);
    },
    /** Ids that `dead list` prints. */
    listed: async (...filter: string[]) => {
      const { stdout } = await adrelay("dead", "list", "--json", ...filter);
      const { acknowledgments } = acknowledgmentPageSchema.parse(JSON.parse(stdout));
      return acknowledgments.map((one) => one.ad_response_id).toSorted();
    },
  };
}

/** Six of each kind, whose text names the kind. Resolves with the ids by code. */
async function thirtyDeadLetters({
  provider,
  acknowledge,
  stack,
}: Pick<Surroundings, "provider" | "acknowledge" | "stack">): Promise<Map<string | undefined, string[]>> {
  const kindOf = new Map(
    KINDS.flatMap((kind) => Array.from({ length: OF_EACH }, () => [unknownId(), kind] as const)),
  );
  provider.onAcknowledge(({ fields }) => {
    const { status = 500, code } = kindOf.get(String(fields["ad_response_id"])) ?? {};
    return { kind: "answer", status, body: { type: "about:blank", ...(code === undefined ? {} : { code }) } };
  });
  for (const [id, { code }] of kindOf) {
    await acknowledge(id, `canary of ${code}`);
  }
  await eventually(async () => {
    const samples = await fetchLedgerMetrics(stack.workerOpsUrl);
    expect(sumOf(samples, "adrelay_acknowledgments", { state: "dead" })).toBe(KINDS.length * OF_EACH);
  });
  const ids = [...kindOf.keys()];
  return Map.groupBy(ids, (id) => kindOf.get(id)?.code);
}

/** All that Redis holds, as one text. */
async function dumpRedis({ url }: TestRedis): Promise<string> {
  const direct = new Redis(url);
  const keys = await direct.keys("*");
  const values = await Promise.all(
    keys.map(async (key) => ((await direct.type(key)) === "hash" ? direct.hgetall(key) : key)),
  );
  direct.disconnect();
  return JSON.stringify(values);
}

describe("lists of thirty dead letters", () => {
  let surroundings: Surroundings;
  let byCode: Awaited<ReturnType<typeof thirtyDeadLetters>>;
  beforeAll(async () => {
    surroundings = await startSurroundings();
    byCode = await thirtyDeadLetters(surroundings);
  });
  afterAll(() => surroundings.stop());

  test("dead letters are listed with the provider's own codes, and filtered by them", async () => {
    const { adrelay, listed } = surroundings;
    const { stdout } = await adrelay("dead", "list");
    expect(stdout.split("\n")[0]).toMatch(/^AD RESPONSE +PUBLISHER +REASON +CODE +ATTEMPTS +DIED$/);
    for (const [code, reason] of [
      ["campaign_ended", "http_422"],
      ["bad_form", "http_400"],
    ] as const) {
      const [id = ""] = byCode.get(code) ?? [];
      expect(stdout).toMatch(new RegExp(`^${id}  default +${reason} +${code} +1 `, "m"));
      expect(await listed("--code", code)).toEqual(byCode.get(code)?.toSorted());
    }
    const [other = ""] = byCode.get(undefined) ?? [];
    expect(stdout).toMatch(new RegExp(`^${other}  default +http_4xx \\(http_418\\) +- +1 `, "m"));
    expect(await adrelay("dead", "list", "--code", "campain_ended")).toEqual({
      exit: 0,
      stdout: "",
      stderr:
        "No dead letters match.\nThe latest dead letters have the codes bad_form, campaign_ended, text_too_long, unknown_ad.\n",
    });
  });

  test.for([
    [["dead", "list"], []],
    [["dead", "replay"], ["--yes"]],
    [
      ["dead", "discard"],
      ["--yes", "--why", "old"],
    ],
  ] as const)(
    "%j with an unknown publisher or reason fails, and names those that there are",
    async ([words, more]) => {
      const { adrelay } = surroundings;
      const publisher = await adrelay(...words, "--publisher", "acme", ...more);
      expect(publisher).toMatchObject({ exit: 2, stdout: "" });
      expect(publisher.stderr).toMatch(/publisher: there is no such publisher; known: default$/m);
      const reason = await adrelay(...words, "--reason", "http_409", ...more);
      expect(reason).toMatchObject({ exit: 2, stdout: "" });
      expect(reason.stderr).toMatch(
        /reason: there is no such reason; known: exhausted, blocked, .*payload_lost$/m,
      );
    },
  );

  test("queued acknowledgments are listed with their last answer and next attempt", async () => {
    const { provider, adrelay, acknowledge } = surroundings;
    expect(await adrelay("queued", "list")).toEqual({
      exit: 0,
      stdout: "",
      stderr: "No queued acknowledgments match.\n",
    });
    const [status, headers, body] = [429, { "Retry-After": "60" }, { code: "too_fast" }];
    provider.onAcknowledge(() => ({ kind: "answer", status, headers, body }));
    const id = unknownId();
    await acknowledge(id, "text");
    await eventually(async () => {
      const { stdout } = await adrelay("queued", "list", "--publisher", "default", "--since", "1h");
      expect(stdout).toMatch(
        /^AD RESPONSE +PUBLISHER +LAST ANSWER +CODE +ATTEMPTS +NEXT ATTEMPT +WAITS FOR +QUEUED\n/,
      );
      expect(stdout).toMatch(new RegExp(`^${id}  default +http_429 +too_fast +1 +`, "m"));
    });
    expect((await adrelay("queued", "list", "--until", "1h")).stderr).toBe(
      "No queued acknowledgments match.\n",
    );
    expect((await adrelay("queued", "list", "--publisher", "acme")).exit).toBe(2);
  });
});

describe.concurrent("changes of thirty dead letters", () => {
  test("a replay says how many were delivered, died again by reason, and wait", async (context) => {
    const surroundings = await setup(context);
    const { provider, adrelay } = surroundings;
    const byCode = await thirtyDeadLetters(surroundings);
    const [waiting] = byCode.get("text_too_long") ?? [];
    provider.onAcknowledge(({ fields }) => {
      const id = String(fields["ad_response_id"]);
      if (id === waiting) {
        return { kind: "answer", status: 503 };
      }
      return byCode.get("campaign_ended")?.includes(id) === true
        ? acknowledged()
        : { kind: "answer", status: 413, body: { code: "still_too_long" } };
    });
    const done = await adrelay("dead", "replay", "--reason", "http_422", "--yes");
    expect(done.exit).toBe(0);
    expect(done.stderr).toMatch(
      /^12 of 12 replayed: 6 delivered, 5 dead again \(http_413 5\), 1 waiting\nSome still wait for their delivery\. See later: adrelay replays show \S+\n$/m,
    );
    for (const line of [
      /^state +completed$/m,
      /^replayed +12 of 12 put back on the queue$/m,
      /^delivered +6$/m,
      /^dead again +5 \(http_413 5\)$/m,
      /^waiting +1$/m,
      /^filter +reason=http_422$/m,
    ]) {
      expect(done.stdout).toMatch(line);
    }
    provider.onAcknowledge(() => acknowledged());
    const id = /^replay +(\S+)$/m.exec(done.stdout)?.[1] ?? "";
    const later = await adrelay("replays", "show", id, "--watch");
    expect(later.stdout).toMatch(/^delivered +7\n.*\nwaiting +0$/m);
    expect((await adrelay("replays", "list")).stdout).toMatch(
      new RegExp(`^${id}  completed  12 of 12 +7 +5 +0 +reason=http_422 +admin `, "m"),
    );
  });

  test("a replay of letters that die again stops by itself, and leaves the others dead", async (context) => {
    const surroundings = await setup(context);
    const { stack, adrelay, loadStates, listed } = surroundings;
    await thirtyDeadLetters(surroundings);
    const stopped = await adrelay(
      "dead",
      "replay",
      "--all",
      "--stop-at-share",
      "0.5",
      "--stop-after",
      "10",
      "--yes",
    );
    expect(stopped.exit).toBe(1);
    expect(stopped.stdout).toMatch(/^state +stopped: most failed again\nreplayed +10 of 30 /m);
    expect(stopped.stdout).toMatch(/^dead again +10 \(/m);
    expect(await loadStates()).toMatchObject({ dead: 30, queued: 0 });
    const logs = stack.apps.get("worker")?.logs ?? [];
    expect(logs.filter(({ event }) => event === "replay_stopped")).toHaveLength(1);
    expect((await adrelay("audit", "--limit", "1")).stdout).toMatch(
      / {2}adrelay +- +replays_stop +\S+ {2}failed=10 ended=10$/m,
    );
    const never = await adrelay("dead", "replay", "--all", "--stop-at-share", "never", "--yes");
    expect(never).toMatchObject({
      exit: 1,
      stdout: expect.stringMatching(/^replayed +30 of 30 /m),
      stderr: expect.stringMatching(/\nAll 30 are dead again: the cause isn't fixed\.\n$/),
    });
    const again = await adrelay("dead", "replay", "--code", "bad_form", "--yes");
    expect(again.exit).toBe(1);
    expect(again.stderr).toMatch(/^So few can't stop by themselves if they fail again: .*20 /);
    expect(again.stderr).toMatch(/\nAll 6 are dead again: the cause isn't fixed\.\n$/);
    const [one = ""] = await listed("--code", "bad_form");
    expect(await adrelay("dead", "replay", one)).toEqual({
      exit: 1,
      stdout: `${one}  dead again (http_400, bad_form)\n`,
      stderr: "",
    });
  });

  test("a replay without a worker says so, and ends once a worker runs", async (context) => {
    const surroundings = await setup(context);
    const { provider, stack, begin } = surroundings;
    await thirtyDeadLetters(surroundings);
    provider.onAcknowledge(() => acknowledged());
    await stack.apps.get("worker")?.stop();
    const { output, ended } = begin("dead", "replay", "--code", "bad_form", "--yes");
    await eventually(() => expect(output.stderr).toMatch(/^No worker has been seen for \d+ s: /m), 30_000);
    await stack.start("worker");
    const { exit, stdout } = await ended;
    expect({ exit, stdout }).toEqual({ exit: 0, stdout: expect.stringMatching(/^delivered +6$/m) });
  });

  test("a bulk discard asks, goes on after a crash of the worker, and removes the texts from Redis", async (context) => {
    const surroundings = await setup(context);
    const { stack, adrelay, loadStates, listed } = surroundings;
    const byCode = await thirtyDeadLetters(surroundings);
    const words = ["dead", "discard", "--code", "campaign_ended", "--why", "the campaign has ended"];
    const dry = await adrelay("dead", "discard", "--code", "campaign_ended", "--dry-run");
    expect(dry).toEqual({ exit: 0, stdout: "6 dead letters match\n", stderr: "" });
    expect(await adrelay(...words)).toMatchObject({
      exit: 2,
      stdout: "",
      stderr: expect.stringContaining("--yes"),
    });
    expect(await dumpRedis(surroundings.redis)).toContain("canary of campaign_ended");
    await stack.crash("worker");
    const started = await adrelay(...words, "--yes", "--no-wait");
    const id = /^discard +(\S+)$/m.exec(started.stdout)?.[1] ?? "";
    expect(started.stdout).toMatch(/^state +running\ndiscarded +0 of 6$/m);
    await stack.start("worker");
    const done = await adrelay("discards", "show", id, "--watch");
    expect(done).toMatchObject({
      exit: 0,
      stdout: expect.stringMatching(/^state +completed\ndiscarded +6 of 6$/m),
    });
    expect(await listed()).toHaveLength(24);
    expect((await adrelay("lookup", String(byCode.get("campaign_ended")?.[0]))).stdout).toMatch(
      /^state +discarded$/m,
    );
    await eventually(async () =>
      expect(await dumpRedis(surroundings.redis)).not.toContain("canary of campaign_ended"),
    );
    expect(await dumpRedis(surroundings.redis)).toContain("canary of unknown_ad");
    expect((await adrelay("discards", "list")).stdout).toMatch(
      new RegExp(`^${id}  completed  6 of 6 +code=campaign_ended +until=\\S+ +admin `, "m"),
    );
    const audit = (await adrelay("audit", "--limit", "2")).stdout;
    expect(audit).toMatch(new RegExp(`  admin  \\S+ +discards_end +${id}  discarded=6$`, "m"));
    expect(audit).toMatch(
      new RegExp(
        `  admin  127\\.0\\.0\\.1  discards_start +${id}  code=campaign_ended .*why="the campaign`,
        "m",
      ),
    );
    expect(await loadStates()).toMatchObject({ dead: 24, discarded: 6 });
  });

  test("a bulk discard is cancelled before a worker takes it", async (context) => {
    const surroundings = await setup(context);
    const { stack, adrelay, loadStates } = surroundings;
    await thirtyDeadLetters(surroundings);
    await stack.apps.get("worker")?.stop();
    const started = await adrelay("dead", "discard", "--all", "--why", "test data", "--yes", "--no-wait");
    const id = /^discard +(\S+)$/m.exec(started.stdout)?.[1] ?? "";
    const cancelled = await adrelay("discards", "cancel", id);
    expect(cancelled).toMatchObject({ exit: 0, stdout: expect.stringMatching(/^state +cancelled$/m) });
    await stack.start("worker");
    const refused = await Promise.all([
      adrelay("discards", "cancel", id),
      adrelay("discards", "show", id, "--watch"),
      adrelay("discards", "show", unknownId()),
    ]);
    expect(refused.map(({ exit }) => exit)).toEqual([1, 1, 1]);
    expect(await loadStates()).toMatchObject({ dead: 30, discarded: 0 });
  });
});
