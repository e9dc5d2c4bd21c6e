/** The cases of the contract, run against a gateway with the real ad server and its shipped catalogue. */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AdServerProcess,
  eventually,
  type RelayStack,
  relayCaller,
  startAdServer,
  startRelayStack,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";

const KEY = "case-key-of-a-caller";
const OTHER_KEY = "case-key-of-another";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const fieldsSchema = z.record(z.string(), z.unknown());
const stepSchema = z.strictObject({
  send: z.strictObject({
    method: z.string(),
    path: z.string(),
    headers: z.record(z.string(), z.string().nullable()).optional(),
    body: fieldsSchema.optional(),
    raw: z.string().optional(),
    until_s: z.number().optional(),
  }),
  expect: z.strictObject({
    status: z.number().optional(),
    status_in: z.array(z.number()).optional(),
    content_type: z.string().optional(),
    headers: z.record(z.string(), z.string()).optional(),
    body: fieldsSchema.optional(),
    exact: z.boolean().optional(),
    error_paths: z.array(z.string()).optional(),
  }),
  save: z.record(z.string(), z.string()).optional(),
});
type Step = z.infer<typeof stepSchema>;
const caseFileSchema = z.object({
  cases: z.array(
    z.strictObject({
      name: z.string(),
      needs: z.array(z.literal("other_key")).optional(),
      steps: z.array(stepSchema),
    }),
  ),
});

const file = new URL("./testdata/cases.json", import.meta.url);
const { cases } = caseFileSchema.parse(JSON.parse(readFileSync(file, "utf8")));

let redis: TestRedis;
let adServer: AdServerProcess;
let stack: RelayStack;
let folder: string;

beforeAll(async () => {
  redis = await startTestRedis();
  adServer = await startAdServer(redis);
  folder = mkdtempSync(join(tmpdir(), "adrelay-cases-"));
  const publishersFile = join(folder, "publishers.yaml");
  const digest = (key: string) => createHash("sha256").update(key).digest("hex");
  writeFileSync(
    publishersFile,
    `publishers:\n` +
      `  - { id: ours, name: Ours, key_sha256: [${digest(KEY)}] }\n` +
      `  - { id: theirs, name: Theirs, key_sha256: [${digest(OTHER_KEY)}] }\n`,
  );
  const env = { PUBLISHERS_FILE: publishersFile, API_KEYS: "", ACK_WAIT_MS: "10000" };
  stack = await startRelayStack({ redis, providerUrl: adServer.url, env });
});
afterAll(async () => {
  await stack.stop();
  await adServer.stop();
  await redis.dispose();
  rmSync(folder, { recursive: true });
});

test.each(cases.map((one) => [one.name, one.steps] as const))("%s", async (_name, steps) => {
  const saved = new Map([["other_key", OTHER_KEY]]);
  for (const step of steps) {
    const run = () => runStep(step, saved);
    await (step.send.until_s === undefined ? run() : eventually(run, step.send.until_s * 1000));
  }
});

const CONTEXT = { session_id: "s", user_agent: "curl", user_ip: "203.0.113.7" };

test.each([
  ["nulls", { request_configuration: null, optional_context: { country: null, age: null } }],
  ["a header's address", { request_context: { ...CONTEXT, user_ip: "[2001:db8::1]:443, 10.0.0.1" } }],
  ["no user agent", { request_context: { ...CONTEXT, user_agent: null } }],
  [
    "attributes as texts",
    { optional_context: { country: " us", asn: "AS64500", age: "34", gender: "Male" } },
  ],
  ["unreadable attributes", { optional_context: { country: "T1", asn: {}, age: "18+", gender: "unknown" } }],
])("an injection with %s gets an answer through the gateway", async (_what, more) => {
  const prompt = "Which running shoes should I buy for my first marathon?";
  const body = { prompt, request_context: CONTEXT, ...more };
  const answer = await relayCaller(stack.gatewayUrl, KEY).inject({}, body);
  expect([200, 202]).toContain(answer.status);
  expect(answer.headers.get("X-Adrelay-Fallback")).toBeNull();
});

async function runStep(step: Step, saved: Map<string, string>): Promise<void> {
  const { send, expect: wanted, save = {} } = step;
  const fill = (text: string) => fillIn(text, saved);
  const body = send.raw ?? (send.body === undefined ? undefined : fill(JSON.stringify(send.body)));
  const headers = Object.fromEntries(
    Object.entries(send.headers ?? {}).map(([name, value]) => [name, value === null ? null : fill(value)]),
  );
  const caller = relayCaller(stack.gatewayUrl, KEY);
  const answer = await caller.send(fill(send.path), body, { method: send.method, headers });
  expect(wanted.status_in ?? [wanted.status]).toContain(answer.status);
  if (wanted.content_type !== undefined) {
    expect(answer.headers.get("Content-Type")).toContain(wanted.content_type);
  }
  for (const [name, value] of Object.entries(wanted.headers ?? {})) {
    expect(answer.headers.get(name)).toBe(value);
  }
  for (const [name, value] of Object.entries(wanted.body ?? {})) {
    expectValue(name, answer.body[name], typeof value === "string" ? fill(value) : value);
  }
  if (wanted.exact === true) {
    expect(Object.keys(answer.body).sort()).toEqual(Object.keys(wanted.body ?? {}).sort());
  }
  const faults = z.array(z.object({ path: z.string() })).safeParse(answer.body["errors"]).data ?? [];
  for (const path of wanted.error_paths ?? []) {
    expect(faults.some((fault) => fault.path.startsWith(path))).toBe(true);
  }
  for (const [name, field] of Object.entries(save)) {
    saved.set(name, String(answer.body[field]));
  }
}

function expectValue(name: string, actual: unknown, wanted: unknown): void {
  switch (wanted) {
    case "$uuid":
      expect(actual, name).toMatch(UUID);
      return;
    case "$string":
      expect(actual, name).toEqual(expect.stringMatching(/./s));
      return;
    case "$number":
      expect(actual, name).toEqual(expect.any(Number));
      return;
    default:
      expect(actual, name).toEqual(wanted);
  }
}

/** Replaces `{{name}}` and `{{name:upper}}` by values that earlier steps saved, and `$repeat:a:N` by N letters. */
function fillIn(text: string, saved: ReadonlyMap<string, string>): string {
  return text
    .replace(/\{\{(\w+)(:upper)?\}\}/g, (_whole, name: string, upper: string | undefined) => {
      const value = JSON.stringify(saved.get(name) ?? "").slice(1, -1);
      return upper === undefined ? value : value.toUpperCase();
    })
    .replace(/\$repeat:(.):(\d+)/g, (_whole, letter: string, times: string) => letter.repeat(Number(times)));
}
