/** `npm run adrelay -- …`: the command of apps/cli, in the folder where npm was called. */
import { runProcess } from "../apps/cli/src/run-cli.ts";
import { HOME, returnToCallersFolder } from "./environment.ts";

returnToCallersFolder();
await runProcess(process, { calledAs: "npm run adrelay --", stackHomes: [HOME] });
