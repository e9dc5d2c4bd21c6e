/** `npm run pack:cli`: packs the command adrelay as a package without dependencies, under .adrelay/. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packCli } from "./pack-cli/pack-cli.ts";

const root = fileURLToPath(new URL("../", import.meta.url));
console.log(await packCli({ root, home: join(root, ".adrelay") }));
