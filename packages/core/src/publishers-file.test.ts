import { expect, test } from "vitest";
import { keyOfDigest, stateOfKey } from "./caller-keys.ts";
import { parsePublishersFile } from "./publishers-file.ts";

const A = "a".repeat(64);
const B = "b".repeat(64);
const DAY_MS = 86_400_000;

const publisher = (members: string) => `publishers: [{ id: acme, name: Acme, ${members} }]`;

function faultsOf(text: string): string[] {
  const parsed = parsePublishersFile(text);
  return parsed.kind === "ok" ? [] : parsed.faults.map(({ path, message }) => `${path}: ${message}`);
}

test("both forms of keys count, and a key without an id has the beginning of its digest", () => {
  const text = publisher(`key_sha256: [${A}], keys: [{ id: k2, sha256: ${B}, expires: 2027-05-31 }]`);
  const parsed = parsePublishersFile(text);
  expect(parsed.kind === "ok" && parsed.entries[0]?.keys).toEqual([
    keyOfDigest(A),
    { id: "k2", digest: B, createdAtMs: undefined, expiresAtMs: Date.UTC(2027, 4, 31) },
  ]);
  expect(keyOfDigest(A).id).toBe("aaaaaaaaaaaa");
});

test.each([
  [`keys: [{ id: k, sha256: ${A}, expires: tomorrow }]`, "publishers 1, keys 1, expires: must be a date"],
  [`keys: [{ id: k, sha256: ${A}, expires: 2027-02-30 }]`, "publishers 1, keys 1, expires: must be a date"],
  [
    `keys: [{ id: k, sha256: ${A}, created: 2027-01-02, expires: 2027-01-01 }]`,
    "publishers 1, keys 1: expires before it was created",
  ],
  [`keys: [{ id: "k k", sha256: ${A} }]`, "publishers 1, keys 1, id: must be 1 to 64 letters"],
  [`keys: [{ id: k, sha256: ${A} }, { id: k, sha256: ${B} }]`, "acme: the id k of a key appears more"],
  [`keys: [{ id: k, sha256: ${A} }], key_sha256: [${A}]`, ": the key aaaaaaaa… appears more than once"],
  [`key_sha256: [${A}], empty_answers: drop`, "publishers 1, empty_answers: must be acknowledge or abandon"],
  [`key_sha256: [${A}], stored_responses: yes`, "publishers 1, stored_responses: must be skip or allow"],
  [`key_sha256: [${A}], cache_marked: on`, "publishers 1, cache_marked: must be skip or allow"],
  [`key_sha256: [${A}], openai_base_url: sk-secret`, "publishers 1, openai_base_url: "],
  [`key_sha256: [${A}], anthropic_base_url: 7`, "publishers 1, anthropic_base_url: "],
  ["name: Acme", ": is not valid YAML: DUPLICATE_KEY in line 1"],
  [`key_sha256: [${A}], provider: { url: "http://a.example" }`, "must have either api_key_env or api_key"],
  [
    `key_sha256: [${A}], provider: { url: "http://a.example", api_key_env: K, api_key_file: /k }`,
    "must have either api_key_env or api_key_file",
  ],
  [
    `key_sha256: [${A}], provider: { url: "http://a.example", api_key_file: sk-secret }`,
    "publishers 1, provider, api_key_file: must be the absolute path of a file",
  ],
])("the publisher with %s is refused, and the fault says why", (members, fault) => {
  const faults = faultsOf(publisher(members));
  expect(faults.join("\n")).toContain(fault);
  expect(faults.join("\n")).not.toContain("sk-secret");
});

test("ids that appear twice are named together with faults of the form", () => {
  const one = (id: string, more: string) => `{ id: ${id}, name: A, key_sha256: [${A}]${more} }`;
  const text = `publishers: [${one("acme", "")}, ${one("acme", ", colour: red")}, 7, { id: [] }]`;
  const faults = faultsOf(text);
  expect(faults).toContain("acme: appears more than once");
  expect(faults.join("\n")).toContain("publishers 2: has members that are not known");
});

test("what is said of calls of models is read, and is undefined without it", () => {
  const rules = "empty_answers: abandon, stored_responses: skip, cache_marked: allow";
  const text = publisher(`key_sha256: [${A}], ${rules}, openai_base_url: "http://model.example/v1"`);
  const parsed = parsePublishersFile(text);
  expect(parsed.kind === "ok" && parsed.entries[0]).toMatchObject({
    emptyAnswers: "abandon",
    storedResponses: "skip",
    cacheMarked: "allow",
    openaiBaseUrl: "http://model.example/v1",
    anthropicBaseUrl: undefined,
  });
});

test("a document that its aliases make too large is refused", () => {
  const level = (at: number) =>
    `a${at}: &a${at} [${Array(20)
      .fill(`*a${at - 1}`)
      .join(",")}]`;
  const text = ["a0: &a0 [x]", ...[1, 2, 3, 4, 5, 6].map(level)].join("\n");
  expect(faultsOf(text)).toEqual([": is too large with its aliases"]);
});

test.each([
  [undefined, "valid"],
  [15 * DAY_MS, "valid"],
  [13 * DAY_MS, "expiring"],
  [1, "expiring"],
  [0, "expired"],
  [-1, "expired"],
] as const)("a key with %s ms left is %s", (leftMs, state) => {
  const nowMs = Date.UTC(2027, 0, 1);
  const expiresAtMs = leftMs === undefined ? undefined : nowMs + leftMs;
  expect(stateOfKey({ ...keyOfDigest(A), expiresAtMs }, nowMs)).toBe(state);
});
