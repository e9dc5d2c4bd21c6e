/** `npm run adrelay -- …`: the command of apps/cli, in the folder where npm was called. */
import { fileURLToPath } from "node:url";
import { runProcess } from "../apps/cli/src/run-cli.ts";
import { environment, HOME, homeRemarks, returnToCallersFolder } from "./environment.ts";

const ENV_FILE = fileURLToPath(new URL("../.env", import.meta.url));

for (const line of homeRemarks(ENV_FILE, environment)) {
  console.error(`adrelay: ${line}`);
}
returnToCallersFolder();
await runProcess(process, { calledAs: "npm run adrelay --", stackHomes: [HOME] });
