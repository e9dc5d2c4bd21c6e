/** Tries out the linter's import directions, because a rule that can't fail guards nothing. */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

const FORBIDDEN = [
  ["packages/contract", "@adrelay/core"],
  ["packages/contract", "node:fs"],
  ["packages/core", "@adrelay/store"],
  ["packages/core", "node:crypto"],
  ["packages/client", "@adrelay/contract"],
  ["packages/client", "node:crypto"],
  ["packages/client/src/node", "@adrelay/core"],
  ["packages/store", "@adrelay/provider"],
  ["packages/store", "@adrelay/service-kit"],
  ["packages/store", "bullmq"],
  ["packages/store", "@adrelay/relay-kit"],
  ["packages/provider", "@adrelay/store"],
  ["packages/service-kit", "@adrelay/provider"],
  ["packages/service-kit", "@adrelay/relay-kit"],
  ["packages/verdict", "@adrelay/store"],
  ["packages/verdict", "@adrelay/contract"],
  ["packages/relay-kit", "@adrelay/app-gateway"],
  ["packages/relay-kit", "@adrelay/testkit"],
  ["packages/relay-kit", "bullmq"],
  ["packages/dev-servers", "@adrelay/contract"],
  ["packages/dev-servers", "@adrelay/testkit"],
  ["packages/testkit", "@adrelay/store"],
  ["apps/gateway", "@adrelay/testkit"],
  ["apps/gateway", "@adrelay/dev-servers"],
  ["apps/gateway", "@adrelay/app-worker"],
  ["apps/worker", "bullmq"],
  ["apps/ad-server", "../../../../ad-model/fitting/fit-model.ts"],
  ["apps/cli", "@adrelay/service-kit"],
  ["apps/cli", "@adrelay/relay-kit"],
  ["apps/cli", "@adrelay/provider"],
  ["apps/gateway/test", "../../../e2e/chaos/index.ts"],
  ["bench", "../scripts/long-run.ts"],
  ["bench/parts", "../../e2e/chaos/index.ts"],
  ["e2e", "../scripts/bootstrap/command-line.mjs"],
  ["e2e/chaos", "../../bench/index.ts"],
  ["scripts", "../bench/figures.ts"],
  ["scripts/observe", "../../e2e/observe/traffic.ts"],
] as const;

const ALLOWED = [
  ["packages/core", "@adrelay/contract"],
  ["packages/client/src/node", "node:fs"],
  ["packages/store", "@adrelay/core"],
  ["packages/service-kit", "@adrelay/core"],
  ["packages/verdict", "@adrelay/core"],
  ["packages/relay-kit", "@adrelay/store"],
  ["packages/relay-kit", "@adrelay/verdict/answer-judge"],
  ["packages/relay-kit", "@adrelay/service-kit"],
  ["packages/testkit", "@adrelay/dev-servers"],
  ["apps/gateway", "@adrelay/relay-kit"],
  ["apps/gateway", "@adrelay/store"],
  ["apps/cli", "@adrelay/contract"],
  ["apps/cli", "@adrelay/core"],
  ["bench/parts", "../figures.ts"],
  ["e2e", "./chaos/index.ts"],
  ["scripts", "../bench/index.ts"],
  ["scripts/bootstrap", "../../bench/options.mjs"],
  ["scripts/observe", "../../e2e/observe/index.ts"],
] as const;

const caseFile = (part: string, imported: string) => {
  const folder = /^(apps|packages)\/\w+(-\w+)*$/.test(part) ? `${part}/src` : part;
  return `${folder}/${imported.replaceAll(/\W/g, "-")}.ts`;
};

let folder: string;
let report: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "adrelay-boundaries-"));
  copyFileSync(join(ROOT, "biome.json"), join(folder, "biome.json"));
  for (const [part, imported] of [...FORBIDDEN, ...ALLOWED]) {
    const file = join(folder, caseFile(part, imported));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `import { x } from "${imported}";\nexport const y = x;\n`);
  }
  const flags = ["--vcs-enabled=false", "--only=style/noRestrictedImports", "--max-diagnostics=none"];
  const biome = join(ROOT, "node_modules/.bin/biome");
  const lint = spawnSync(biome, ["lint", ...flags, "."], { cwd: folder, encoding: "utf8" });
  report = lint.stdout + lint.stderr;
});
afterAll(() => rmSync(folder, { recursive: true }));

test.each(FORBIDDEN)("%s may not import %s", (part, imported) => {
  expect(report).toContain(`${caseFile(part, imported)}:1:19 lint/style/noRestrictedImports`);
});

test.each(ALLOWED)("%s may import %s", (part, imported) => {
  expect(report).not.toContain(caseFile(part, imported));
});
