/**
 * Vitest's global set-up of the tests that start apps: bundles each app and the command adrelay into few files. Node loads about
 * a thousand modules at the start of an app, and a bundle starts in less than two thirds of the processor time.
 *
 * A bundled module keeps its place: it finds its scripts and models beside its source. Threads are bundled, too. Classes and
 * functions keep their names. So a bundle differs from the sources only in how it is loaded.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { APP_BUNDLES_VARIABLE } from "@adrelay/testkit";
import { build, type OutputFile, type Plugin } from "esbuild";
import { environment } from "../environment.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const APPS = ["gateway", "worker", "proxy", "ad-server", "demo-model", "cli"];
const THREADS = ["packages/verdict/src/judge-thread", "apps/ad-server/src/catalog/load-catalog-thread"];

/** Does nothing if the environment says already which programs the tests start. */
export async function setup(): Promise<void> {
  if (environment[APP_BUNDLES_VARIABLE] === undefined) {
    environment[APP_BUNDLES_VARIABLE] = await bundleApps(join(ROOT, ".adrelay", "app-bundles"));
  }
}

/** Writes `<app>.js` and what they share into the folder, and resolves to it. */
export async function bundleApps(folder: string): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: [
      ...APPS.map((app) => ({ in: `apps/${app}/src/main.ts`, out: app })),
      ...THREADS.map((thread) => ({ in: `${thread}.ts`, out: basename(thread) })),
    ],
    outdir: folder,
    bundle: true,
    splitting: true,
    write: false,
    platform: "node",
    format: "esm",
    target: `node${process.versions.node}`,
    keepNames: true,
    // The CommonJS parts need `require` for Node's own modules.
    banner: {
      js: 'import { createRequire as makeRequire } from "node:module";\nconst require = makeRequire(import.meta.url);',
    },
    plugins: [keepPlaces],
    logLevel: "error",
  });
  writeChanged(folder, outputFiles);
  return folder;
}

/** Tells each module where its source is. */
const keepPlaces: Plugin = {
  name: "keep-places",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.(?:ts|[cm]?js)$/ }, ({ path }) => {
      const source = readFileSync(path, "utf8");
      const contents = withPlace(source, path);
      return contents === source ? undefined : { contents, loader: path.endsWith(".ts") ? "ts" : "js" };
    });
  },
};

/** How the sources name the file of a thread. */
const THREAD_URL = /new URL\("\.\/([\w-]+)\.ts", import\.meta\.url\)/g;

function withPlace(source: string, path: string): string {
  const located = source
    .replace(THREAD_URL, (_url, thread: string) => {
      if (!THREADS.includes(relative(ROOT, join(dirname(path), thread)))) {
        throw new TypeError(`${path} starts ${thread}, which isn't bundled`);
      }
      return `new URL("./${thread}.js", import.meta["url"])`;
    })
    .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href));
  const isCommonJs = /\b__(?:dirname|filename)\b/.test(source) && !/(?:const|let|var) __dirname/.test(source);
  const places = { __dirname: dirname(path), __filename: path };
  const declared = Object.entries(places).map(([name, place]) => `var ${name} = ${JSON.stringify(place)};`);
  return isCommonJs ? `${declared.join(" ")}${located}` : located;
}

/** Files that stay the same are left alone, because another run may be starting them. */
function writeChanged(folder: string, files: readonly OutputFile[]): void {
  mkdirSync(folder, { recursive: true });
  const kept = new Set(files.map(({ path }) => path));
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (!kept.has(path)) {
      rmSync(path);
    }
  }
  for (const { path, contents } of files) {
    if (!holds(path, contents)) {
      writeFileSync(path, contents);
    }
  }
}

function holds(path: string, contents: Uint8Array): boolean {
  try {
    return readFileSync(path).equals(contents);
  } catch {
    return false;
  }
}
