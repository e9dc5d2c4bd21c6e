import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publisherIdSchema } from "@adrelay/contract";
import { afterAll, beforeAll, expect, test } from "vitest";
import { digestKey, listAccounts, loadPublishers } from "./publishers.ts";

const hashOf = (key: string) => digestKey(key).toString("hex");
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "adrelay-publishers-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

function load(text: string, apiKey: string | null = "shared", env: Record<string, string> = {}) {
  const file = join(folder, "publishers.yaml");
  writeFileSync(file, text);
  return loadPublishers({
    file,
    apiKeys: [],
    provider: { url: "http://127.0.0.1:1", apiKey: apiKey ?? undefined, apiKeyHeader: "X-Service-API-Key" },
    env: (name) => env[name],
  });
}

const entry = (id: string, key: string, more = "") =>
  `  - { id: ${id}, name: ${id}, key_sha256: ["${hashOf(key)}"]${more} }\n`;

test("without a file there is only the publisher default, with all keys", () => {
  const provider = { url: "http://127.0.0.1:1", apiKey: "p", apiKeyHeader: "H" };
  const loaded = loadPublishers({ file: undefined, apiKeys: ["a", "b"], provider, env: () => undefined });
  const publishers = loaded.kind === "ok" ? loaded.publishers : [];
  expect(publishers.map(({ id, keyDigests }) => [id, keyDigests.length])).toEqual([["default", 2]]);
});

test("the key of a publisher's own provider comes from the environment", () => {
  const own = ", provider: { url: 'https://ads.example', api_key_env: ACME_KEY, api_key_header: X-Key }";
  const loaded = load(`publishers:\n${entry("acme", "a", own)}${entry("beta", "b")}`, "shared", {
    ACME_KEY: "secret",
  });
  const accounts = loaded.kind === "ok" ? loaded.publishers.map(({ account }) => account) : [];
  expect(accounts).toEqual([
    { url: "https://ads.example", apiKey: "secret", apiKeyHeader: "X-Key" },
    { url: "http://127.0.0.1:1", apiKey: "shared", apiKeyHeader: "X-Service-API-Key" },
  ]);
});

test("all faults of a file are reported together, by name", () => {
  const own = ", provider: { url: 'https://ads.example', api_key_env: MISSING }";
  const loaded = load(
    `publishers:\n${entry("acme", "a", own)}${entry("beta", "b")}${entry("beta", "b")}`,
    null,
  );
  const faults =
    loaded.kind === "faulty" ? loaded.faults.map(({ path, message }) => `${path} ${message}`) : [];
  expect(faults).toHaveLength(5);
  expect(faults.join("\n")).toMatch(/acme.*MISSING, is not set/);
  expect(faults.join("\n")).toMatch(/beta.*PROVIDER_API_KEY/);
  expect(faults.join("\n")).toMatch(/beta appears more than once/);
});

test.each([
  ["", "PUBLISHERS_FILE"],
  ["publishers: []", "publishers"],
  ["publishers: [{ id: 'a b' }]", "publishers.0.id"],
  ["publishers: [{ id: a, name: a, key_sha256: [plain-key] }]", "publishers.0.key_sha256.0"],
  ["publishers: [{ id: a, name: a, key_sha256: [], typo: 1 }]", "publishers.0"],
  ["a: [", "PUBLISHERS_FILE"],
])("the file %j is refused and the fault says where", (text, where) => {
  const loaded = load(text);
  expect(loaded.kind).toBe("faulty");
  expect(loaded.kind === "faulty" && loaded.faults.some(({ path }) => path.includes(where))).toBe(true);
  expect(JSON.stringify(loaded)).not.toContain("plain-key");
});

test.each([
  'a: b\n    token: "abc" sk-live-secret',
  `publishers:\n${entry("acme", "a", ", provider: { url: 'https://ads.example', api_key_env: sk-live-secret }")}`,
])("a key that is in the file by mistake is not shown", (text) => {
  const loaded = load(text);
  expect(loaded.kind).toBe("faulty");
  expect(JSON.stringify(loaded)).not.toContain("sk-live-secret");
});

test("the example in the documents is a valid file", () => {
  const text = readFileSync(new URL("../../../docs/publishers.example.yaml", import.meta.url), "utf8");
  expect(load(text, "shared", { GLOBE_PROVIDER_KEY: "k" }).kind).toBe("ok");
});

test("a missing file is named", () => {
  const provider = { url: "http://127.0.0.1:1", apiKey: "p", apiKeyHeader: "H" };
  const loaded = loadPublishers({ file: "/no/such/file.yaml", apiKeys: [], provider, env: () => undefined });
  expect(JSON.stringify(loaded)).toContain("/no/such/file.yaml");
});

test("publishers with the same provider and key share an account, which has the first one's name", () => {
  const account = { url: "https://ads.example", apiKey: "k", apiKeyHeader: "X" };
  const of = (id: string, more = {}) => ({
    id: publisherIdSchema.parse(id),
    name: id,
    keyDigests: [],
    account: { ...account, ...more },
  });
  const accounts = listAccounts([of("zeta"), of("beta"), of("gamma", { apiKey: "other" })]);
  expect(accounts.map(({ name, publishers }) => ({ name, publishers }))).toEqual([
    { name: "beta", publishers: ["beta", "zeta"] },
    { name: "gamma", publishers: ["gamma"] },
  ]);
});
