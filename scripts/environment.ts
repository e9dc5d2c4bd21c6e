/** The environment of a command. No other file of scripts/ reads or changes it. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";

/** The variables of this process. Its child processes inherit them, changes included. */
export const environment: NodeJS.ProcessEnv = process.env;

/** The folder of the local stack's data, logs and keys. */
export const HOME = environment["ADRELAY_HOME"] || fileURLToPath(new URL("../.adrelay", import.meta.url));

/** What the user should know if a `.env` names the folder in vain. A file that can't be read has no remark. */
export function homeRemarks(file: string, env: NodeJS.ProcessEnv): string[] {
  return env["ADRELAY_HOME"] === undefined && readVariables(file)["ADRELAY_HOME"]
    ? [".env: ADRELAY_HOME has no effect here: set it in the shell, because it is read before .env"]
    : [];
}

function readVariables(file: string): NodeJS.Dict<string> {
  try {
    return parseEnv(readFileSync(file, "utf8"));
  } catch {
    return {};
  }
}

/** npm has changed to the folder of package.json. This goes back to the folder where npm was called. */
export function returnToCallersFolder(): void {
  process.chdir(environment["INIT_CWD"] || process.cwd());
}
