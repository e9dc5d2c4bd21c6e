import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { loadLocalKeys } from "./home.ts";

function setup() {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-home-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "home", "keys.json");
  const write = (text: string) => {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
  return { file, write };
}

test("keys are made once, and their file is not written again", () => {
  const { file } = setup();
  const keys = loadLocalKeys(file);
  const { ino, mtimeMs, mode } = statSync(file);
  expect(mode & 0o777).toBe(0o600);
  expect(loadLocalKeys(file)).toEqual(keys);
  expect(statSync(file)).toMatchObject({ ino, mtimeMs });
  expect(readdirSync(dirname(file))).toEqual(["keys.json"]);
});

test("a key that an older version didn't have is added to the others", () => {
  const { file, write } = setup();
  write('{"apiKey":"demo-1","providerKey":"provider-1","adminToken":"admin-1"}');
  const keys = loadLocalKeys(file);
  expect(keys).toMatchObject({ apiKey: "demo-1", providerKey: "provider-1", adminToken: "admin-1" });
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(keys);
});

test.each(["", '{"apiKey":"demo-1",', "[]", '{"apiKey":1}'])(
  "keys that read %j are refused with the file's name, and stay as they are",
  (text) => {
    const { file, write } = setup();
    write(text);
    expect(() => loadLocalKeys(file)).toThrow(file);
    expect(readFileSync(file, "utf8")).toBe(text);
  },
);
