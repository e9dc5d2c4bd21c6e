import { existsSync, readdirSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { expect, test } from "vitest";
import { loadAdServerConfig } from "../apps/ad-server/src/config.ts";
import { loadGatewayConfig } from "../apps/gateway/src/config.ts";
import { loadWorkerConfig } from "../apps/worker/src/config.ts";
import { generateDocuments } from "./documents.ts";

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

test.each((await generateDocuments()).map(({ path, text }) => [path, text] as const))(
  "%s is what the code generates",
  (path, text) => {
    expect(read(path), "run `npm run generate`").toBe(text);
  },
);

test("the settings of .env.example are the defaults of the schemas", () => {
  // Each setting is commented out, so that a copy of the file changes nothing. Here all are switched on.
  const example = parseEnv(read(".env.example").replaceAll(/^#(?=[A-Z_]+=.)/gm, ""));
  expect(Object.keys(example).length).toBeGreaterThan(25);
  const needed = {
    API_KEYS: "key-for-this-test",
    PROVIDER_API_KEY: "k",
    AD_SERVER_API_KEYS: "key-for-this-test",
  };
  for (const load of [loadGatewayConfig, loadWorkerConfig, loadAdServerConfig]) {
    const set = load({ ...example, ...needed });
    expect(set.kind).toBe("ok");
    expect(JSON.stringify(set)).toBe(JSON.stringify(load(needed)));
  }
});

/** Targets of relative links in a Markdown text, without their anchors. */
function linksOf(text: string): string[] {
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? "");
  return targets.filter((target) => !/^[a-z]+:|^#/.test(target)).map((target) => target.replace(/#.*$/, ""));
}

test("every relative link in the documents leads to a file", () => {
  const documents = [
    "README.md",
    ...readdirSync(new URL("../docs/", import.meta.url), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".md"))
      .map((path) => `docs/${path}`),
  ];
  const broken = documents.flatMap((path) =>
    linksOf(read(path))
      .filter((target) => !existsSync(new URL(target, new URL(`../${path}`, import.meta.url))))
      .map((target) => `${path}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test.each([
  "docs/security.md",
  "docs/sizing.md",
  "docs/backup.md",
  "docs/operations.md",
  "docs/publishers.example.yaml",
  "docs/runbooks/unknown-acknowledgments.md",
  "docs/runbooks/quota-met.md",
  "docs/runbooks/redis-not-durable.md",
  "docs/runbooks/redis-memory.md",
  "docs/runbooks/redis-data-lost.md",
  "docs/runbooks/intake-refused.md",
  "docs/runbooks/injections-untracked.md",
])("%s says that unknown ids must be accepted for a day after an outage", (path) => {
  expect(read(path).replaceAll(/\s+(?:# )?/g, " ")).toMatch(/reject\b.*\baccept`? for a day/);
});

test("a newcomer finds each document in one step from the README", () => {
  const linked = new Set(linksOf(read("README.md")));
  const guides = readdirSync(new URL("../docs/", import.meta.url)).filter((name) => name.endsWith(".md"));
  expect(guides.filter((name) => !linked.has(`docs/${name}`))).toEqual([]);
});
