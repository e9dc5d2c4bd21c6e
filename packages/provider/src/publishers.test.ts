import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { publisherIdSchema } from "@adrelay/contract";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listAccounts } from "./accounts.ts";
import { digestKey, loadPublishers } from "./publishers.ts";
import type { TlsFiles } from "./tls-files.ts";

const NO_FILES = { ca: undefined, clientCert: undefined, clientKey: undefined };

const hashOf = digestKey;
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
    provider: {
      url: "http://127.0.0.1:1",
      apiKey: apiKey ?? undefined,
      apiKeyHeader: "X-Service-API-Key",
      tlsFiles: NO_FILES,
    },
    env: (name) => env[name],
  });
}

const entry = (id: string, key: string, more = "") =>
  `  - { id: ${id}, name: ${id}, key_sha256: ["${hashOf(key)}"]${more} }\n`;

test("without a file there is only the publisher default, with all keys", () => {
  const provider = { url: "http://127.0.0.1:1", apiKey: "p", apiKeyHeader: "H", tlsFiles: NO_FILES };
  const loaded = loadPublishers({ file: undefined, apiKeys: ["a", "b"], provider, env: () => undefined });
  const publishers = loaded.kind === "ok" ? loaded.publishers : [];
  expect(publishers.map(({ id, keys }) => [id, keys.map((key) => key.digest)])).toEqual([
    ["default", [hashOf("a"), hashOf("b")]],
  ]);
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
  ["publishers: [{ id: 'a b' }]", "publishers 1, id"],
  ["publishers: [{ id: a, name: a, key_sha256: [plain-key] }]", "publishers 1, key_sha256 1"],
  ["publishers: [{ id: a, name: a, key_sha256: [], typo: 1 }]", "publishers 1"],
  ["a: [", "PUBLISHERS_FILE"],
])("the file %j is refused and the fault says where", (text, where) => {
  const loaded = load(text);
  expect(loaded.kind).toBe("faulty");
  expect(loaded.kind === "faulty" && loaded.faults.some(({ path }) => path.includes(where))).toBe(true);
  expect(JSON.stringify(loaded)).not.toContain("plain-key");
});

test.each([
  ["publishers: [{ id: a, name: a }]", "publishers 1 must have keys, or key_sha256"],
  ["publishers: [{ id: a, name: a, key_sha256: x }]", "publishers 1, key_sha256 must be a list"],
  ["publishers: [{ id: a, name: 7, key_sha256: [x] }]", "publishers 1, name must be a text"],
  ["publishers: [{ id: a, name: a, key_sha256: [] }]", "publishers 1, key_sha256 must not be empty"],
  ["publishers: [{ id: a, name: a, nmae: a }]", 'publishers 1 has members that are not known: "nmae"'],
  ["", "PUBLISHERS_FILE must be a mapping"],
])("what is wrong with %j is said in plain words", (text, words) => {
  const loaded = load(text);
  const faults =
    loaded.kind === "faulty" ? loaded.faults.map(({ path, message }) => `${path} ${message}`) : [];
  expect(faults.join("\n")).toContain(words);
  expect(faults.join("\n")).not.toMatch(/Invalid input|Too small|Unrecognized/);
});

test.each([
  'a: b\n    token: "abc" sk-live-secret',
  `publishers:\n${entry("acme", "a", ", provider: { url: 'https://ads.example', api_key_env: sk-live-secret }")}`,
])("a key that is in the file by mistake is not shown", (text) => {
  const loaded = load(text);
  expect(loaded.kind).toBe("faulty");
  expect(JSON.stringify(loaded)).not.toContain("sk-live-secret");
});

test("a key in place of the path of its file is not shown", () => {
  const shared = { url: "http://127.0.0.1:1", apiKeyHeader: "H", tlsFiles: NO_FILES };
  const provider = { ...shared, apiKey: undefined, apiKeyFile: "sk-live-secret" };
  const loaded = loadPublishers({ file: undefined, apiKeys: [], provider, env: () => undefined });
  const own = ", provider: { url: 'https://ads.example', api_key_file: /sk-live-secret }";
  for (const result of [loaded, load(`publishers:\n${entry("acme", "a", own)}`)]) {
    expect(result).toMatchObject({
      kind: "faulty",
      faults: [{ message: expect.stringContaining("ENOENT") }],
    });
    expect(JSON.stringify(result)).not.toContain("sk-live-secret");
  }
});

test("the example in the documents is a valid file", () => {
  const text = readFileSync(new URL("../../../docs/publishers.example.yaml", import.meta.url), "utf8");
  expect(load(text, "shared", { GLOBE_PROVIDER_KEY: "k" }).kind).toBe("ok");
});

test("a missing file is named", () => {
  const provider = { url: "http://127.0.0.1:1", apiKey: "p", apiKeyHeader: "H", tlsFiles: NO_FILES };
  const loaded = loadPublishers({ file: "/no/such/file.yaml", apiKeys: [], provider, env: () => undefined });
  expect(JSON.stringify(loaded)).toContain("/no/such/file.yaml");
});

test("publishers with the same provider and key share an account, which has the first one's name", () => {
  const account = { url: "https://ads.example", apiKey: "k", apiKeyHeader: "X" };
  const of = (id: string, more = {}) => ({
    id: publisherIdSchema.parse(id),
    name: id,
    keys: [],
    account: { ...account, ...more },
  });
  const accounts = listAccounts([of("zeta"), of("beta"), of("gamma", { apiKey: "other" })]);
  expect(accounts.map(({ name, publishers }) => ({ name, publishers }))).toEqual([
    { name: "beta", publishers: ["beta", "zeta"] },
    { name: "gamma", publishers: ["gamma"] },
  ]);
});

const tlsFile = (name: string) => fileURLToPath(new URL(`../testdata/tls/${name}`, import.meta.url));
const PAIR = { clientCert: tlsFile("relay.pem"), clientKey: tlsFile("relay-key.pem") };

/** The faults of the settings' provider account. */
function faultsOfSettings(tlsFiles: Partial<TlsFiles>, url = "https://ads.example", apiKeyHeader = "X-Key") {
  const provider = { url, apiKey: "p", apiKeyHeader, tlsFiles: { ...NO_FILES, ...tlsFiles } };
  const loaded = loadPublishers({ file: undefined, apiKeys: [], provider, env: () => undefined });
  return loaded.kind === "faulty" ? loaded.faults.map(({ path, message }) => `${path} ${message}`) : [];
}

test("certificates that belong together are accepted", () => {
  expect(faultsOfSettings({ ca: tlsFile("ca.pem"), ...PAIR })).toEqual([]);
});

test.each([
  [{ ca: "/no/such.pem" }, /^PROVIDER_CA_FILE .*ENOENT/],
  [{ ...PAIR, clientKey: "key-by-mistake" }, /^(?!.*key-by-mistake)PROVIDER_CLIENT_KEY_FILE .*ENOENT/],
  [{ ca: tlsFile("relay-key.pem") }, /^PROVIDER_CA_FILE .*relay-key\.pem is not in PEM/],
  [{ ca: tlsFile("make-certificates.sh") }, /^PROVIDER_CA_FILE .*make-certificates\.sh/],
  [{ clientCert: PAIR.clientCert }, /^PROVIDER_CLIENT_KEY_FILE is not set/],
  [{ clientKey: PAIR.clientKey }, /^PROVIDER_CLIENT_CERT_FILE is not set/],
  [{ ...PAIR, clientKey: tlsFile("relay.pem") }, /^PROVIDER_CLIENT_KEY_FILE .*relay\.pem is not in PEM/],
  [{ ...PAIR, clientKey: tlsFile("provider-key.pem") }, /^PROVIDER_CLIENT_KEY_FILE .*doesn't belong to/],
] as const)("the certificates %j are refused, and the fault names the file", (files, fault) => {
  expect(faultsOfSettings(files)).toEqual([expect.stringMatching(fault)]);
});

test("all faulty files are named together, also those of publishers", () => {
  const own =
    ", provider: { url: 'https://ads.example', api_key_env: KEY, ca_file: /no/ca, client_key_file: /no/key }";
  const loaded = load(`publishers:\n${entry("acme", "a", own)}`, "shared", { KEY: "k" });
  const faults = loaded.kind === "faulty" ? loaded.faults.map(({ path }) => path) : [];
  expect(faults).toEqual(["PUBLISHERS_FILE acme ca_file", "PUBLISHERS_FILE acme client_key_file"]);
});

test("a publisher's own certificates make its account another one", () => {
  const own = (more: string) => `, provider: { url: 'https://ads.example', api_key_env: KEY${more} }`;
  const file = `publishers:\n${entry("acme", "a", own(""))}${entry("beta", "b", own(`, ca_file: '${tlsFile("ca.pem")}'`))}`;
  const loaded = load(file, "shared", { KEY: "k" });
  const publishers = loaded.kind === "ok" ? loaded.publishers : [];
  expect(publishers.map(({ account }) => account.tls !== undefined)).toEqual([false, true]);
  expect(listAccounts(publishers).map(({ name }) => name)).toEqual(["acme", "beta"]);
});

test("a URL with a user is refused if our key is in the header Authorization", () => {
  const [fault, ...others] = faultsOfSettings({}, "https://sesame:secret@ads.example", "authorization");
  expect(fault).toMatch(/^PROVIDER_URL can't have a user/);
  expect(others).toEqual([]);
  expect(fault).not.toMatch(/sesame|secret/);
});
