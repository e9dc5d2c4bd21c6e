/** Which files tests start as apps: bundles, or the sources, which are what `npm start` and the image start. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the bundles, which vitest's global set-up makes. If it is empty, tests start the sources. */
export const APP_BUNDLES_VARIABLE = "ADRELAY_APP_BUNDLES";

/** The file to start. Throws if there is none of that name. */
export function programOf(app: string, from: "bundles" | "sources" = "bundles"): string {
  const bundles = process.env[APP_BUNDLES_VARIABLE] ?? "";
  const file =
    from === "sources" || bundles === ""
      ? fileURLToPath(new URL(`../../../apps/${app}/src/main.ts`, import.meta.url))
      : join(bundles, `${app}.js`);
  if (!existsSync(file)) {
    throw new TypeError(`${file} is missing`);
  }
  return file;
}
