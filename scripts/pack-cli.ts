/** `npm run pack:cli [-- FOLDER]`: packs the command adrelay as a package without dependencies. Prints its path. */
import { chmodSync, copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Metafile } from "esbuild";
import manifest from "../apps/cli/package.json" with { type: "json" };
import { optionsOrExit } from "./bootstrap/command-line.mjs";
import { PACK_CLI_COMMAND } from "./pack/options.mjs";
import { packArchive } from "./pack/pack-archive.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
/** The oldest Node that the packed command runs on. */
const NODE_OLDEST = "20";

const README = `# adrelay

Operates an Adrelay, the durable relay for ads in LLM answers, through the admin API of its gateway.

    ADRELAY_URL=http://127.0.0.1:8081 ADRELAY_ADMIN_TOKEN=... npx adrelay status

\`npx adrelay --help\` lists all commands.
`;

const { folder } = optionsOrExit("npm run pack:cli", PACK_CLI_COMMAND);
console.log(await packArchive(folder, writePackage));

/** Bundles the command into one file. */
async function writePackage(folder: string): Promise<void> {
  const metafile = await bundle(join(folder, "adrelay.js"));
  chmodSync(join(folder, "adrelay.js"), 0o755);
  writeFileSync(join(folder, "package.json"), JSON.stringify(describePackage(), null, 2));
  writeFileSync(join(folder, "README.md"), README);
  writeFileSync(join(folder, "THIRD-PARTY-LICENSES"), collectLicenses(metafile));
  copyFileSync(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
}

async function bundle(outfile: string): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ["apps/cli/src/main.ts"],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: `node${NODE_OLDEST}`,
    // The CommonJS parts of the bundle need `require` for Node's own modules.
    banner: {
      js: 'import { createRequire as makeRequire } from "node:module";\nconst require = makeRequire(import.meta.url);',
    },
    legalComments: "none",
    metafile: true,
    logLevel: "error",
  });
  return metafile;
}

function describePackage() {
  return {
    name: "adrelay",
    version: manifest.version,
    description: "Operates an Adrelay relay: status, dead letters, replays.",
    license: manifest.license,
    type: "module",
    bin: { adrelay: "adrelay.js" },
    engines: { node: `>=${NODE_OLDEST}` },
    files: ["adrelay.js", "THIRD-PARTY-LICENSES"],
  };
}

/** The licence texts of all packages in the bundle. Each licence demands that it is distributed with the code. */
function collectLicenses({ inputs }: Metafile): string {
  const folders = Object.keys(inputs).flatMap(
    (path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(path)?.[1] ?? [],
  );
  return [...new Set(folders)]
    .sort()
    .map((folder) => `${folder.replace(/^.*node_modules\//, "")}\n\n${readLicense(join(ROOT, folder))}`)
    .join(`\n${"-".repeat(80)}\n`);
}

function readLicense(folder: string): string {
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  // A package may only name its licence in its manifest. Then the manifest is all there is.
  return readFileSync(join(folder, file ?? "package.json"), "utf8");
}
