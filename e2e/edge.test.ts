/**
 * Guards against an edge (a firewall, a balancer, a log-in wall before the service) that ends acknowledgments, tells callers
 * something false, or stops the others.
 * The tests mostly wait, so some run at the same time, on one stack: each has a publisher of its own, with its own provider.
 */
import {
  acknowledged,
  type Behaviour,
  callerKeyOf,
  eventually,
  fetchLedgerMetrics,
  relayCaller,
  sumOf,
  unknownId,
} from "@adrelay/testkit";
import { describe, expect, test } from "vitest";
import { type OwnPart, shareStack } from "./shared-stack.ts";

const ASYNC = { headers: { Prefer: "respond-async" } };
const HTML = { "content-type": "text/html" };
const AGE_MAX_MS = 12_000;
const SHORT_AGE_MAX_MS = 7000;

/** A stack for the tests of one `describe`. Returns what gives each of them its publisher. */
function sharePublishers(ageMaxMs: number, tests: number): () => ReturnType<typeof setup> {
  const takePart = shareStack({
    tests,
    publishers: ["publisher"],
    env: { DELIVERY_MAX_AGE: `${ageMaxMs}ms`, RETRY_SCHEDULE: "100ms,500ms", WORKER_CONCURRENCY: "10" },
  });
  return () => setup(takePart());
}

/** A publisher and a provider for one test. */
function setup({ relay, provider, idOf }: OwnPart) {
  const publisher = idOf("publisher");
  const caller = relayCaller(relay.gatewayUrl, callerKeyOf(publisher));
  const inject = () => caller.injectUntilFilled();
  const samples = () => fetchLedgerMetrics(relay.workerOpsUrl);
  const isOpening = (line: Readonly<Record<string, unknown>>) =>
    line["event"] === "circuit_open" && line["provider"] === publisher;
  return {
    provider,
    caller,
    inject,
    acknowledge: async (text: string) => {
      const id = await inject();
      expect((await caller.acknowledgeUntilAccepted(id, text, ASYNC)).status).toBe(201);
      return id;
    },
    countIn: async (state: string) => sumOf(await samples(), "adrelay_acknowledgments", { state, publisher }),
    openings: () => relay.apps.get("worker")?.logs.filter(isOpening) ?? [],
    deadFor: async () =>
      [...(await samples())].flatMap(([name, value]) =>
        name.startsWith("adrelay_acknowledgments_dead_total") &&
        name.includes(`publisher="${publisher}"`) &&
        value > 0
          ? [`${name} ${value}`]
          : [],
      ),
  };
}

/** Texts that firewalls take for attacks. */
const SUSPECT_TEXTS = [
  "SELECT * FROM shoes WHERE size = 42; DROP TABLE socks;",
  "Use <script>fetch('/api')</script> in the page.",
  "Run `cat /etc/passwd` and look at ../../secrets.",
  "' OR 1=1 --",
  "{{7*7}} <!--#exec cmd -->",
];
const REFUSED_BY_FIREWALL = /SELECT|<script>|passwd|OR 1=1|exec/;

/** What firewalls answer. */
const FIREWALLS: readonly (readonly [string, Behaviour])[] = [
  [
    "403 with a page",
    { kind: "raw", status: 403, bytes: "<html><h1>403 Forbidden</h1></html>", headers: HTML },
  ],
  ["406 with a page", { kind: "raw", status: 406, bytes: "<h1>Not Acceptable!</h1>", headers: HTML }],
  ["400 with a text", { kind: "raw", status: 400, bytes: "Request blocked" }],
  ["403 of an API gateway", { kind: "answer", status: 403, body: { message: "Forbidden" } }],
];

/** What an edge answers for the minutes of a deploy. */
const DEPLOYS: readonly (readonly [string, Behaviour])[] = [
  ["404 with a text", { kind: "raw", status: 404, bytes: "404 page not found\n" }],
  ["404 of an API gateway", { kind: "answer", status: 404, body: { message: "no Route matched" } }],
  [
    "302 to a log-in page",
    {
      kind: "raw",
      status: 302,
      bytes: "<a href='/login'>Found</a>",
      headers: { ...HTML, Location: "/login" },
    },
  ],
  ["200 with a page", { kind: "raw", status: 200, bytes: "<html>We'll be back soon</html>", headers: HTML }],
  [
    "409 with a page",
    { kind: "raw", status: 409, bytes: "<h1>DNS points to prohibited IP</h1>", headers: HTML },
  ],
  ["200 with another JSON", { kind: "answer", status: 200, body: { status: "maintenance" } }],
  ["503 with a page", { kind: "raw", status: 503, bytes: "<html>Service Unavailable</html>", headers: HTML }],
];

describe.concurrent("before the age limit", () => {
  const takePublisher = sharePublishers(AGE_MAX_MS, DEPLOYS.length + 1);

  test.for(DEPLOYS)(
    "while an edge answers all with %s, nothing ends and nothing false is told",
    async ([_name, answer]) => {
      const { provider, caller, inject, countIn, deadFor, openings } = takePublisher();
      const known = await inject();
      const others = await Promise.all(Array.from({ length: 40 }, inject));
      provider.onAcknowledge(() => answer);
      provider.onStart(() => answer);
      const told = await caller.acknowledgeUntilAccepted(known, "text", { headers: { Prefer: "wait=2" } });
      expect(told).toMatchObject({ status: 201, body: { status: "recoverable_error" } });
      const taken = await Promise.all(others.map((id) => caller.acknowledgeUntilAccepted(id, "text", ASYNC)));
      expect(new Set(taken.map(({ status }) => status))).toEqual(new Set([201]));
      const injection = await caller.inject();
      expect(injection).toMatchObject({ status: 202, body: { status: "no_fill", success: false } });
      expect(injection.headers.get("X-Adrelay-Fallback")).not.toBeNull();
      await eventually(() => expect(openings()).toHaveLength(1));
      const again = await caller.acknowledgeUntilAccepted(known, "text", { headers: { Prefer: "wait=1" } });
      expect(again.status).toBe(201);
      expect(await countIn("queued")).toBe(41);
      provider.onAcknowledge(() => acknowledged());
      await eventually(async () => expect(await countIn("delivered")).toBe(41), AGE_MAX_MS);
      expect(await deadFor()).toEqual([]);
    },
  );

  test("a 404 of the service itself is an end, and is told only for an id that the relay has no record of", async () => {
    const { provider, caller, inject, deadFor } = takePublisher();
    provider.onAcknowledge(() => ({ kind: "answer", status: 404, body: { code: "unknown_ad_response" } }));
    const told = (id: string) =>
      caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "wait=5" } });
    expect(await told(unknownId())).toMatchObject({ status: 404, body: { code: "unknown_ad_response" } });
    expect(await told(await inject())).toMatchObject({ status: 201, body: { status: "recoverable_error" } });
    expect(await deadFor()).toEqual([expect.stringMatching(/reason="http_404".* 2$/)]);
  });
});

describe.concurrent("up to the age limit", () => {
  const takePublisher = sharePublishers(SHORT_AGE_MAX_MS, FIREWALLS.length + 1);

  test.for(FIREWALLS)(
    "twenty texts that a firewall answers with %s in a row stop no other acknowledgment",
    async ([_name, answer]) => {
      const { provider, acknowledge, countIn, deadFor, openings } = takePublisher();
      provider.onAcknowledge(({ fields }) =>
        REFUSED_BY_FIREWALL.test(String(fields["llm_response"])) ? answer : acknowledged(),
      );
      const good: string[] = [];
      const blocked: string[] = [];
      for (let at = 0; at < 48; at += 1) {
        good.push(await acknowledge("Try the Velmora Drift."));
        // A run of twenty in the middle.
        if (at === 24) {
          for (let turn = 0; turn < 20; turn += 1) {
            blocked.push(await acknowledge(SUSPECT_TEXTS[turn % SUSPECT_TEXTS.length] ?? ""));
          }
        }
      }
      await eventually(async () => expect(await countIn("delivered")).toBe(48), 5000);
      expect(openings()).toEqual([]);
      // Each waits slowly, and its last attempt is made at its age.
      await eventually(async () => expect(await countIn("dead")).toBe(20), 2 * SHORT_AGE_MAX_MS);
      expect(await deadFor()).toEqual([expect.stringMatching(/reason="blocked".* 20$/)]);
      expect(blocked.map((id) => provider.acknowledgmentsOf(id).length)).toEqual(blocked.map(() => 2));
      expect(await countIn("delivered")).toBe(good.length);
    },
  );

  test("a deploy that lasts beyond the age limit ends no acknowledgment", async () => {
    const { provider, caller, inject, countIn, openings } = takePublisher();
    const ids = await Promise.all(Array.from({ length: 40 }, inject));
    provider.onAcknowledge(() => ({ kind: "raw", status: 404, bytes: "404 page not found\n" }));
    await Promise.all(ids.map((id) => caller.acknowledgeUntilAccepted(id, "text", ASYNC)));
    const startedAtMs = performance.now();
    await eventually(() => expect(openings()).toHaveLength(1));
    await eventually(
      () => expect(performance.now() - startedAtMs).toBeGreaterThan(1.3 * SHORT_AGE_MAX_MS),
      2 * SHORT_AGE_MAX_MS,
    );
    expect(await countIn("dead")).toBe(0);
    provider.onAcknowledge(() => acknowledged());
    await eventually(async () => expect(await countIn("delivered")).toBe(40));
  });
});
