import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Every package.json of the repository that depends on a library, with the version range that it names. */
export function manifestsThatName(library: string): { path: string; range: string }[] {
  const folders = ["apps", "packages"].flatMap((parent) =>
    readdirSync(`${ROOT}${parent}`).map((folder) => `${parent}/${folder}/`),
  );
  return ["", ...folders].flatMap((folder) => {
    const path = `${folder}package.json`;
    const manifest: Record<string, Record<string, string> | undefined> = JSON.parse(
      readFileSync(`${ROOT}${path}`, "utf8"),
    );
    const range = manifest["dependencies"]?.[library] ?? manifest["devDependencies"]?.[library];
    return range === undefined ? [] : [{ path, range }];
  });
}
