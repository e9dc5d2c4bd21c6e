import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { clearStamp, isStampValid, writeStamp } from "./install.mjs";

/** A workspace of a root with one dependency and a package without any, installed and stamped. */
function setup() {
  const root = mkdtempSync(join(tmpdir(), "adrelay-stamp-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  write("pnpm-workspace.yaml", 'packages:\n  - apps/*\n  - "packages/*"\n  - docs\n');
  write("pnpm-lock.yaml", "lockfileVersion: '9.0'\n");
  write("package.json", '{"devDependencies":{"vitest":"5"}}');
  write("packages/core/package.json", '{"version":"1.0.0"}');
  write("node_modules/.modules.yaml", "");
  const installation = { root, home: join(root, ".adrelay"), nodeVersion: "24.21.0" };
  writeStamp(installation);
  return { root, write, installation };
}

describe("the stamp of an installation", () => {
  it("holds while only sources change", () => {
    const { write, installation } = setup();
    write("packages/core/src/index.ts", "export const one = 1;");
    write("packages/notes/readme.md", "no package");
    expect(isStampValid(installation)).toBe(true);
  });

  it.each([
    ["pnpm-lock.yaml", "lockfileVersion: '10.0'\n"],
    ["pnpm-workspace.yaml", "packages:\n  - packages/*\n"],
    ["package.json", '{"devDependencies":{"vitest":"6"}}'],
    ["packages/core/package.json", '{"version":"2.0.0"}'],
    ["apps/gateway/package.json", "{}"],
  ])("fails once %s changes", (path, text) => {
    const { write, installation } = setup();
    write(path, text);
    expect(isStampValid(installation)).toBe(false);
  });

  it("fails for another Node, once cleared, and without the modules", () => {
    const { root, installation } = setup();
    expect(isStampValid({ ...installation, nodeVersion: "26.10.0" })).toBe(false);
    rmSync(join(root, "node_modules"), { recursive: true });
    expect(isStampValid(installation)).toBe(false);
    mkdirSync(join(root, "node_modules"));
    clearStamp(installation);
    expect(isStampValid(installation)).toBe(false);
  });

  it("fails, rather than throws, for a manifest that can't be read", () => {
    const { write, installation } = setup();
    write("packages/core/package.json", "{");
    writeStamp(installation);
    expect(isStampValid(installation)).toBe(false);
  });
});
