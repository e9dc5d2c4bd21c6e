import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { digestKey } from "@adrelay/provider";
import { afterAll, expect, test } from "vitest";
import { loadGatewayConfig } from "./config.ts";

const load = (env: Record<string, string>) =>
  loadGatewayConfig({ API_KEYS: "key-of-the-caller", PROVIDER_API_KEY: "k", ...env });

const [ONE, TWO, THREE] = ["token-of-operator-1", "token:of:operator:2", "token-of-operator-3"] as const;

const folder = mkdtempSync(join(tmpdir(), "adrelay-operators-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A file of operators. */
function fileOf(text: string): string {
  const file = join(folder, "operators.yaml");
  writeFileSync(file, text);
  return file;
}

const hashOf = digestKey;
const digestOf = (token: string) => Buffer.from(digestKey(token), "hex");

test("the settings and the file together name the operators", () => {
  const file = fileOf(`operators:
  - { name: bob, token_sha256: ["${hashOf(TWO)}"], role: operate }
  - name: carol
    token_sha256: ["${hashOf(THREE)}", "${"0".repeat(64)}"]
    role: view
    publishers: [acme]
    expires: 2027-01-31T00:00:00Z
`);
  const loaded = load({ ADMIN_TOKEN: ONE, ADMIN_TOKENS: `alice:${TWO}0`, OPERATORS_FILE: file });
  expect(loaded).toMatchObject({
    kind: "ok",
    config: {
      operators: {
        current: [
          { name: "admin", tokenDigests: [digestOf(ONE)], role: "operate", publishers: undefined },
          { name: "alice", tokenDigests: [digestOf(`${TWO}0`)], role: "operate" },
          { name: "bob", tokenDigests: [digestOf(TWO)], role: "operate", expiresAtMs: undefined },
          { name: "carol", role: "view", publishers: ["acme"], expiresAtMs: Date.UTC(2027, 0, 31) },
        ],
      },
    },
  });
});

test("without a token there is no operator", () => {
  expect(load({ ADMIN_TOKEN: "", ADMIN_TOKENS: " " })).toMatchObject({
    kind: "ok",
    config: { operators: { current: [] } },
  });
});

test.each([
  ["alice", "no token"],
  ["alice:", "an empty token"],
  [`:${TWO}`, "no name"],
  [`a b:${TWO}`, "a name with a blank"],
  [`${"x".repeat(33)}:${TWO}`, "a long name"],
  [`alice:${TWO},alice:${THREE}`, "one name twice"],
  [`alice:${TWO},bob:${TWO}`, "one token twice"],
  [`admin:${TWO}`, "the name of ADMIN_TOKEN"],
  ["alice:hunter2-hunter2-hunter2", "the token of ADMIN_TOKEN"],
  ["alice:hunter2-hunter", "a short token"],
  ["alice:demo-admin-token", "a token that everybody knows"],
])("the operators %s are refused for %s", (tokens) => {
  const loaded = load({ ADMIN_TOKEN: "hunter2-hunter2-hunter2", ADMIN_TOKENS: tokens });
  const faults = loaded.kind === "faulty" ? loaded.faults : [];
  expect(faults.map(({ path }) => path.split(".")[0])).toContain("ADMIN_TOKENS");
  expect(JSON.stringify(faults)).not.toContain("hunter2");
});

test.each([
  ["operators: [{ name: a }]", "operators 1, token_sha256"],
  [`operators: [{ name: a, role: root, token_sha256: ["${hashOf(ONE)}"] }]`, "operators 1, role"],
  [
    `operators: [{ name: a, role: view, expires: soon, token_sha256: ["${hashOf(ONE)}"] }]`,
    "operators 1, expires",
  ],
  [`operators: [{ name: a, role: view, token_sha256: [${ONE}] }]`, "operators 1, token_sha256 1"],
  [`operators: [{ name: admin, role: view, token_sha256: ["${hashOf(ONE)}"] }]`, "ADMIN_TOKENS"],
  [`operators: [{ name: a, role: view, token_sha256: ["${hashOf(TWO)}"] }]`, "ADMIN_TOKENS"],
  ["a: [", "OPERATORS_FILE"],
])("the file %s is refused, and the fault says where", (text, where) => {
  const loaded = load({ ADMIN_TOKEN: TWO, OPERATORS_FILE: fileOf(text) });
  const faults = loaded.kind === "faulty" ? loaded.faults : [];
  expect(faults.map(({ path }) => path).join()).toContain(where);
  expect(JSON.stringify(faults)).not.toContain(ONE);
});

test("the example in the documents is a valid file", () => {
  const file = fileURLToPath(new URL("../../../docs/operators.example.yaml", import.meta.url));
  expect(load({ OPERATORS_FILE: file })).toMatchObject({ kind: "ok" });
});
