/** The environment of a command. No other file of scripts/ reads or changes it. */
import { fileURLToPath } from "node:url";

/** The variables of this process. Its child processes inherit them, changes included. */
export const environment: NodeJS.ProcessEnv = process.env;

/** The folder of the local stack's data, logs and keys. */
export const HOME = environment["ADRELAY_HOME"] || fileURLToPath(new URL("../.adrelay", import.meta.url));

/** npm has changed to the folder of package.json. This goes back to the folder where npm was called. */
export function returnToCallersFolder(): void {
  process.chdir(environment["INIT_CWD"] || process.cwd());
}
