/** An empty project with the packed client, as its user installs it. */
import { execFile } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import manifest from "../../packages/client/package.json" with { type: "json" };

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Packs the client into the folder, makes that a project, and installs the client in it without a registry. */
export async function installClient(folder: string): Promise<void> {
  const run = promisify(execFile);
  const packed = await run(process.execPath, [join(ROOT, "scripts/pack-client.ts"), folder]);
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "chat", private: true, type: "module" }),
  );
  const flags = ["--offline", "--no-audit", "--no-fund", "--silent", "--prefix", folder];
  await run("npm", ["install", ...flags, packed.stdout.trim()], { cwd: folder });
}

/** Gives the project the SDKs of models that the client has helpers for, at the versions of this workspace. */
export function linkSdks(folder: string): void {
  for (const name of Object.keys(manifest.peerDependencies)) {
    const path = join(folder, "node_modules", name);
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(join(ROOT, "packages/client/node_modules", name), path);
  }
}
