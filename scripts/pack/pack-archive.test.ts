import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { packArchive } from "./pack-archive.ts";

function setup(): string {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-pack-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function fill(contents: string): Promise<void> {
  writeFileSync(join(contents, "package.json"), JSON.stringify({ name: "thing", version: "1.2.3" }));
}

test("a folder with files of its user gets the archive and nothing else", async () => {
  const folder = setup();
  for (const name of ["client", "cli", "dist"]) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, "own.txt"), name);
  }
  expect(await packArchive(folder, fill)).toBe(join(folder, "thing-1.2.3.tgz"));
  expect(readdirSync(folder).sort()).toEqual(["cli", "client", "dist", "thing-1.2.3.tgz"]);
  expect(readFileSync(join(folder, "client/own.txt"), "utf8")).toBe("client");
});

test("a missing folder is made, and the contents are cleared away after a failure", async () => {
  const folder = join(setup(), "a/b");
  const used: string[] = [];
  const fail = async (contents: string) => {
    used.push(contents);
    throw new RangeError("no contents");
  };
  await expect(packArchive(folder, fail)).rejects.toThrow(RangeError);
  expect(readdirSync(folder)).toEqual([]);
  expect(() => readdirSync(used[0] ?? "")).toThrow("ENOENT");
});
