import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { digestKey } from "@adrelay/provider";
import { Registry } from "prom-client";
import { afterAll, expect, test } from "vitest";
import { checkOperatorsFile } from "./login-checks.ts";
import { OperatorDirectory } from "./operator-directory.ts";
import { OperatorsWatch } from "./operators-watch.ts";

const folder = mkdtempSync(join(tmpdir(), "adrelay-operators-watch-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** `bob:view` is the operator bob with this role, whose token is `token of bob`. */
const fileOf = (...operators: string[]) =>
  `operators: [${operators
    .map((text) => text.split(":"))
    .map(
      ([name, role]) =>
        `{ name: ${name}, role: ${role}, token_sha256: ["${digestKey(`token of ${name}`)}"] }`,
    )
    .join(", ")}]`;

let made = 0;

function watch(text: string) {
  made += 1;
  const file = join(folder, `${made}.yaml`);
  writeFileSync(file, text);
  const directory = new OperatorDirectory({ ADMIN_TOKEN: "token of the single one", OPERATORS_FILE: file });
  expect(directory.load().kind).toBe("reloaded");
  const lines: Record<string, unknown>[] = [];
  const write = (line: Record<string, unknown>) => void lines.push(line);
  const registry = new Registry();
  const watched = new OperatorsWatch({ directory, registry, log: { info: write, error: write } });
  const valid = async () =>
    (await registry.getSingleMetric("adrelay_operators_file_valid")?.get())?.values[0]?.value;
  const names = () => directory.current.map(({ name, role }) => `${name}:${role}`);
  return { watched, lines, names, valid, replace: (next: string) => writeFileSync(file, next), file };
}

test("a change is taken after two looks, and its line names who differs", async () => {
  const { watched, lines, names, replace } = watch(fileOf("bob:view", "eve:operate"));
  replace(fileOf("bob:operate", "dan:view"));
  await watched.look();
  expect([names(), lines]).toEqual([["admin:operate", "bob:view", "eve:operate"], []]);
  await watched.look();
  expect(names()).toEqual(["admin:operate", "bob:operate", "dan:view"]);
  const changed = { added: ["dan"], removed: ["eve"], changed: ["bob"] };
  expect(lines).toEqual([{ event: "operators_reloaded", operators: 3, ...changed }]);
});

test.each([
  ["a: [", "OPERATORS_FILE"],
  [fileOf("bob:root"), "operators 1, role"],
  [fileOf("admin:view"), "names must be distinct"],
])("the file %s is refused once, and the operators stay", async (text, why) => {
  const { watched, lines, names, replace } = watch(fileOf("bob:view"));
  replace(text);
  for (let look = 0; look < 4; look += 1) {
    await watched.look();
  }
  expect(names()).toEqual(["admin:operate", "bob:view"]);
  expect(lines).toMatchObject([{ event: "operators_refused", fault_count: 1 }]);
  expect(JSON.stringify(lines)).toContain(why);
  replace(fileOf("dan:view"));
  await watched.look();
  await watched.look();
  expect(names()).toEqual(["admin:operate", "dan:view"]);
});

test("a file that is gone changes nothing until it is back", async () => {
  const { watched, lines, names, valid, replace, file } = watch(fileOf("bob:view"));
  expect([await valid(), checkOperatorsFile(watched).status]).toEqual([1, "ok"]);
  rmSync(file);
  await watched.look();
  await watched.look();
  expect([await valid(), checkOperatorsFile(watched).status]).toEqual([0, "fail"]);
  expect(names()).toEqual(["admin:operate", "bob:view"]);
  replace(fileOf());
  watched.onHangUp();
  expect(names()).toEqual(["admin:operate"]);
  expect([await valid(), checkOperatorsFile(watched).status]).toEqual([1, "ok"]);
  expect(lines.map(({ event }) => event)).toEqual(["operators_refused", "operators_reloaded"]);
});

test("SIGHUP reads the file at once, and says if nothing has changed", () => {
  const { watched, lines } = watch(fileOf("bob:view"));
  watched.onHangUp();
  expect(lines).toEqual([{ event: "operators_unchanged" }]);
});

test("without a file SIGHUP says nothing of operators", () => {
  const lines: unknown[] = [];
  const write = (line: unknown) => void lines.push(line);
  const log = { info: write, error: write };
  const watched = new OperatorsWatch({ directory: new OperatorDirectory({}), registry: new Registry(), log });
  watched.onHangUp();
  expect(lines).toEqual([]);
  expect(checkOperatorsFile(watched)).toMatchObject({ status: "ok", detail: expect.stringContaining("no ") });
});

test("a token in place of the file's path is not shown", () => {
  const loaded = new OperatorDirectory({ OPERATORS_FILE: "token-by-mistake" }).load();
  expect(loaded).toMatchObject({ kind: "faulty", faults: [{ path: "OPERATORS_FILE" }] });
  expect(JSON.stringify(loaded)).not.toContain("token-by-mistake");
});
