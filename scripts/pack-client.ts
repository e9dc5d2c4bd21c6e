/**
 * `npm run pack:client [-- FOLDER]`: builds @adrelay/client for ESM and CommonJS with its types, and packs it. Prints its path.
 * In the workspace the sources run as they are.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import manifest from "../packages/client/package.json" with { type: "json" };
import { optionsOrExit } from "./bootstrap/command-line.mjs";
import { PACK_CLIENT_COMMAND } from "./pack/options.mjs";
import { packArchive } from "./pack/pack-archive.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const SOURCES = join(ROOT, "packages/client/src");
/** The oldest syntax: that of Node 18. */
const TARGET = "es2022";

/** What the package offers, by the path of import. `platform` decides which globals and modules its types may use. */
const ENTRIES = [
  { path: ".", source: "index", platform: "web" },
  { path: "./ai-sdk", source: "ai-sdk/index", platform: "web" },
  { path: "./openai", source: "sdks/openai", platform: "web" },
  { path: "./anthropic", source: "sdks/anthropic", platform: "web" },
  { path: "./node", source: "node/index", platform: "node" },
] as const;

const FORMATS = [
  { condition: "import", folder: "esm", format: "esm", type: "module" },
  { condition: "require", folder: "cjs", format: "cjs", type: "commonjs" },
] as const;

const { folder } = optionsOrExit("npm run pack:client", PACK_CLIENT_COMMAND);
console.log(await packArchive(folder, writePackage));

async function writePackage(folder: string): Promise<void> {
  const dist = join(folder, "dist");
  for (const { folder: of, format, type } of FORMATS) {
    await bundle(join(dist, of), format);
    writeFileSync(join(dist, of, "package.json"), JSON.stringify({ type }));
  }
  for (const { source, platform } of ENTRIES) {
    declareTypes(join(dist, "types"), source, platform);
  }
  copyTypes(dist);
  writeFileSync(join(folder, "package.json"), JSON.stringify(describePackage(), null, 2));
  copyFileSync(join(ROOT, "packages/client/README.md"), join(folder, "README.md"));
  copyFileSync(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
}

async function bundle(outdir: string, format: "esm" | "cjs"): Promise<void> {
  await build({
    entryPoints: ENTRIES.map(({ source }) => join(SOURCES, `${source}.ts`)),
    outbase: SOURCES,
    outdir,
    bundle: true,
    platform: "neutral",
    external: ["node:*"],
    format,
    target: TARGET,
    legalComments: "none",
    logLevel: "error",
  });
}

/** A compile error fails here: the main entry has only the globals of the web, and the syntax of its target. */
function declareTypes(outDir: string, source: string, platform: "web" | "node"): void {
  const options = {
    declaration: "true",
    emitDeclarationOnly: "true",
    strict: "true",
    exactOptionalPropertyTypes: "true",
    skipLibCheck: "true",
    allowImportingTsExtensions: "true",
    verbatimModuleSyntax: "true",
    module: "nodenext",
    moduleResolution: "nodenext",
    target: TARGET,
    lib:
      platform === "web"
        ? `${TARGET},esnext.disposable,dom,dom.asynciterable`
        : `${TARGET},esnext.disposable`,
    types: platform === "web" ? "" : "node",
    typeRoots: join(ROOT, "node_modules/@types"),
    rootDir: SOURCES,
    outDir,
  };
  const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const tsc = join(ROOT, "node_modules/.bin/tsc");
  execFileSync(tsc, ["--ignoreConfig", ...flags, join(SOURCES, `${source}.ts`)], {
    cwd: join(ROOT, "packages/client"),
    stdio: ["ignore", "inherit", "inherit"],
  });
}

/** Each format has its own copy of the types: a declaration has the module kind of the nearest package.json. */
function copyTypes(dist: string): void {
  const types = join(dist, "types");
  const paths = readdirSync(types, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".d.ts"),
  );
  for (const path of paths) {
    // The sources name each other by `.ts`, which published types must not.
    const text = readFileSync(join(types, path), "utf8").replaceAll(/(["']\.[^"']*)\.ts(["'])/g, "$1.js$2");
    for (const { folder, format } of FORMATS) {
      mkdirSync(join(dist, folder, path, ".."), { recursive: true });
      writeFileSync(join(dist, folder, path), format === "cjs" ? markEsmImports(text) : text);
    }
  }
  rmSync(types, { recursive: true });
}

/** The AI SDK has ES modules only. A CommonJS declaration that imports their types must say so. */
function markEsmImports(text: string): string {
  return text.replaceAll(/(from ["']ai["']);/g, '$1 with { "resolution-mode": "import" };');
}

function describePackage() {
  const { name, version, description, license, sideEffects, peerDependencies, peerDependenciesMeta } =
    manifest;
  return {
    name,
    version,
    description,
    license,
    keywords: ["ads", "llm", "adrelay"],
    type: "module",
    sideEffects,
    exports: { ...Object.fromEntries(ENTRIES.map(exportOf)), "./package.json": "./package.json" },
    // For resolvers that don't know exports.
    main: "./dist/cjs/index.js",
    types: "./dist/cjs/index.d.ts",
    typesVersions: { "*": Object.fromEntries(ENTRIES.filter(({ path }) => path !== ".").map(oldPathOf)) },
    // Only types are imported of them.
    peerDependencies,
    peerDependenciesMeta,
    engines: { node: ">=18" },
    files: ["dist"],
  };
}

function exportOf({ path, source }: (typeof ENTRIES)[number]) {
  const conditions = FORMATS.map(({ condition, folder }) => [
    condition,
    { types: `./dist/${folder}/${source}.d.ts`, default: `./dist/${folder}/${source}.js` },
  ]);
  return [path, Object.fromEntries(conditions)];
}

function oldPathOf({ path, source }: (typeof ENTRIES)[number]) {
  return [path.slice(2), [`./dist/cjs/${source}.d.ts`]];
}
