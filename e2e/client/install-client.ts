/** An empty project with the packed client, as its user installs it. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

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
