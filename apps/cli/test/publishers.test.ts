/** The commands about publishers. Guards against a fault in a file that only a running gateway would find. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parsePublishersFile } from "@adrelay/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AdminApi, startAdminApi } from "./admin-api.ts";
import { runHere } from "./adrelay-process.ts";

const DAY_MS = 86_400_000;
let api: AdminApi;
let folder: string;

beforeAll(async () => {
  api = await startAdminApi();
  folder = mkdtempSync(join(tmpdir(), "adrelay-cli-publishers-"));
});
afterAll(async () => {
  await api.close();
  rmSync(folder, { recursive: true });
});

const adrelay = (...words: string[]) => runHere(["--url", api.url, "publishers", ...words]);
const digestOf = (key: string) => createHash("sha256").update(key).digest("hex");
const day = (fromNowMs: number) => new Date(Date.now() + fromNowMs).toISOString();

function fileWith(text: string): string {
  const file = join(folder, "publishers.yaml");
  writeFileSync(file, text);
  return file;
}

test("lint names what a file needs, and keys that expire, and is content", async () => {
  const keys = `[{ id: soon, sha256: "${digestOf("a")}", expires: "${day(DAY_MS)}" }, { id: gone, sha256: "${digestOf("b")}", expires: 2020-01-01 }]`;
  const file = fileWith(
    `publishers:\n  - { id: acme, name: Acme, keys: ${keys} }\n  - { id: beta, name: Beta, key_sha256: ["${digestOf("c")}"], provider: { url: "http://ads.example", api_key_file: /run/secrets/beta } }`,
  );
  const { exit, stdout } = await adrelay("lint", file);
  expect(exit).toBe(0);
  expect(stdout).toMatch(/^ok {4}file: 2 publishers with 3 keys$/m);
  expect(stdout).toMatch(/^warn {2}acme\/soon: expires on /m);
  expect(stdout).toMatch(/^warn {2}acme\/gone: has expired on 2020-01-01T00:00:00\.000Z$/m);
  expect(stdout).toMatch(/^ok {4}beta: needs the file \/run\/secrets\/beta$/m);
});

test("lint names all faults, and fails", async () => {
  const file = fileWith("publishers: [{ id: a b, name: 7, key_sha256: [sk-secret], typo: 1 }]");
  const { exit, stdout } = await adrelay("lint", file);
  expect(exit).toBe(1);
  expect(stdout.match(/^fail/gm)).toHaveLength(4);
  expect(stdout).toContain("publishers 1, key_sha256 1: must be 64 lower-case hex digits");
  expect(stdout).not.toContain("sk-secret");
  const json = await adrelay("lint", file, "--json");
  expect([json.exit, JSON.parse(json.stdout).checks.length]).toEqual([1, 4]);
  expect((await adrelay("lint", join(folder, "absent"))).exit).toBe(2);
});

test("hash-key makes a strong key, whose entry a publishers' file takes", async () => {
  const { exit, stdout } = await adrelay("hash-key", "--new");
  expect(exit).toBe(0);
  const [, key = ""] = /^# ([\w-]{43})$/m.exec(stdout) ?? [];
  const entry = stdout.slice(stdout.indexOf("keys:")).replaceAll(/^/gm, "    ");
  const parsed = parsePublishersFile(`publishers:\n  - id: acme\n    name: Acme\n${entry}`);
  expect(parsed.kind === "ok" && parsed.entries[0]?.keys).toMatchObject([
    { digest: digestOf(key), id: digestOf(key).slice(0, 12), createdAtMs: expect.any(Number) },
  ]);
});

test("hash-key takes a long key from the terminal, doesn't repeat it, and refuses a short one", async () => {
  const typed = (text: string) => runHere(["publishers", "hash-key"], { typed: text });
  const long = await typed("a-key-of-16-chars\n");
  expect(long).toMatchObject({ exit: 0, stdout: expect.stringContaining(digestOf("a-key-of-16-chars")) });
  expect(long.stdout).not.toContain("a-key-of-16-chars");
  const short = await typed("fifteen-letters\n");
  expect(short).toMatchObject({ exit: 2, stderr: expect.stringContaining("at least 16 characters") });
});

test("list shows each key with its state and its latest use, and whether the file is refused", async () => {
  const at = day(-DAY_MS);
  const keys = [
    { id: "k1", state: "expired", created: at, expires: at, last_used: null },
    { id: "k2", state: "valid", created: null, expires: null, last_used: day(-120_000) },
  ];
  const publishers = [{ id: "acme", name: "Acme", provider: "acme", keys }];
  const file = { digest: "0123456789ab", valid: false, loaded_at: at };
  api.disturb = () => ({ raw: JSON.stringify({ file, publishers }) });
  const { exit, stdout } = await adrelay("list");
  expect(exit).toBe(0);
  expect(stdout).toMatch(/^file 0123456789ab .*faulty or gone/m);
  expect(stdout).toMatch(/^acme +Acme +acme +k1 +expired +\d{4}-\d\d-\d\d .* -$/m);
  expect(stdout).toMatch(/^acme +Acme +acme +k2 +valid +- +- +2m ago$/m);
  expect(JSON.parse((await adrelay("list", "--json")).stdout)).toEqual({ file, publishers });
});

test("check shows what the doctor says of publishers and providers, and nothing else", async () => {
  const check = (name: string, status: string) => ({ name, status, detail: "d" });
  const checks = [
    check("redis", "fail"),
    check("provider:acme", "ok"),
    check("publishers", "warn"),
    check("publisher_keys", "ok"),
  ];
  const answer = (all: unknown) => () => ({ raw: JSON.stringify({ at: day(0), checks: all }) });
  api.disturb = answer(checks);
  const calm = await adrelay("check");
  expect(calm.exit).toBe(0);
  expect(calm.stdout).toBe("ok    provider:acme: d\nwarn  publishers: d\nok    publisher_keys: d\n");
  api.disturb = answer([...checks, check("publishers_file", "fail")]);
  expect((await adrelay("check")).exit).toBe(1);
});
