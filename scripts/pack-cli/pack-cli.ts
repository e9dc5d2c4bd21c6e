import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { build, type Metafile } from "esbuild";
import manifest from "../../apps/cli/package.json" with { type: "json" };

/** The oldest Node that the packed command runs on. */
const NODE_OLDEST = "20";

const README = `# adrelay

Operates an Adrelay, the durable relay for ads in LLM answers, through the admin API of its gateway.

    ADRELAY_URL=http://127.0.0.1:8081 ADRELAY_ADMIN_TOKEN=... npx adrelay status

\`npx adrelay --help\` lists all commands.
`;

export interface PackPlace {
  /** Of the repository. */
  readonly root: string;
  /** Where the archive goes, and a folder with what is in it. */
  readonly home: string;
}

/** Bundles the command to one file and packs it; answers with the archive's path. */
export async function packCli({ root, home }: PackPlace): Promise<string> {
  const folder = join(home, "cli");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const metafile = await bundle(root, join(folder, "adrelay.js"));
  chmodSync(join(folder, "adrelay.js"), 0o755);
  writeFileSync(join(folder, "package.json"), JSON.stringify(describePackage(), null, 2));
  writeFileSync(join(folder, "README.md"), README);
  writeFileSync(join(folder, "THIRD-PARTY-LICENSES"), collectLicenses(root, metafile));
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  const name = execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", home], {
    cwd: folder,
    encoding: "utf8",
  });
  return join(home, name.trim());
}

async function bundle(root: string, outfile: string): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ["apps/cli/src/main.ts"],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: `node${NODE_OLDEST}`,
    // The parts that are CommonJS ask for Node's own modules in their way.
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

/** The licences of all that is in the bundle: each asks to be passed on with it. */
function collectLicenses(root: string, { inputs }: Metafile): string {
  const folders = Object.keys(inputs).flatMap(
    (path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(path)?.[1] ?? [],
  );
  return [...new Set(folders)]
    .sort()
    .map((folder) => `${folder.replace(/^.*node_modules\//, "")}\n\n${readLicense(join(root, folder))}`)
    .join(`\n${"-".repeat(80)}\n`);
}

function readLicense(folder: string): string {
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  // One that only names its licence in its manifest has no text to pass on.
  return readFileSync(join(folder, file ?? "package.json"), "utf8");
}
