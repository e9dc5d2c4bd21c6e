/** `npm run adrelay -- …`: the command of apps/cli, in the folder where npm was called. */
import { fileURLToPath } from "node:url";
import { runProcess } from "../apps/cli/src/run-cli.ts";

const home = process.env["ADRELAY_HOME"] || fileURLToPath(new URL("../.adrelay", import.meta.url));

// npm has changed to the folder of package.json.
process.chdir(process.env["INIT_CWD"] || process.cwd());
await runProcess(process, { calledAs: "npm run adrelay --", stackHomes: [home] });
