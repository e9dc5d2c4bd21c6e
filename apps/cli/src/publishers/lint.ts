/** The command `adrelay publishers lint`. It needs neither a gateway nor a token. */
import { readFileSync } from "node:fs";
import type { DoctorCheck } from "@adrelay/contract";
import { type PublisherEntry, parsePublishersFile, stateOfKey } from "@adrelay/core";
import { defineLocalCommand } from "../command.ts";
import { EXIT, UsageError } from "../exit-codes.ts";
import { showCheck } from "../status-and-doctor.ts";

export const addPublishersLint = defineLocalCommand({
  words: "lint <file>",
  describe: "Checks a publishers' file, and names all of its faults; no relay has to run",
  options: (yargs) =>
    yargs
      .positional("file", { type: "string", describe: "The file, as PUBLISHERS_FILE names it" })
      .demandOption("file"),
  run: async ({ file }, { terminal, isJson, now }) => {
    const checks = lint(readFile(file), now());
    if (isJson) {
      terminal.print(JSON.stringify({ checks }));
    } else {
      for (const check of checks) {
        showCheck(terminal, check);
      }
    }
    return checks.some(({ status }) => status === "fail") ? EXIT.refused : EXIT.done;
  },
});

function readFile(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : `${file} can't be read`);
  }
}

function lint(text: string, nowMs: number): readonly DoctorCheck[] {
  const parsed = parsePublishersFile(text);
  if (parsed.kind === "faulty") {
    return parsed.faults.map(({ path, message }) => {
      return { name: path || "file", status: "fail", detail: message };
    });
  }
  const { entries } = parsed;
  const keys = entries.flatMap(({ keys: own }) => own);
  const summary = `${entries.length} publishers with ${keys.length} keys`;
  return [
    { name: "file", status: "ok", detail: summary },
    ...entries.flatMap((entry) => warnOfKeys(entry, nowMs)),
    ...nameReferences(entries),
  ];
}

function warnOfKeys({ id, keys }: PublisherEntry, nowMs: number): DoctorCheck[] {
  return keys.flatMap((key) => {
    const state = stateOfKey(key, nowMs);
    const at = new Date(key.expiresAtMs ?? 0).toISOString();
    const details = { valid: undefined, expiring: `expires on ${at}`, expired: `has expired on ${at}` };
    const detail = details[state];
    return detail === undefined ? [] : [{ name: `${id}/${key.id}`, status: "warn", detail }];
  });
}

/** What gateways and workers must find, which only they can check. */
function nameReferences(entries: readonly PublisherEntry[]): DoctorCheck[] {
  const named = entries.flatMap(({ id, provider }) => {
    const { api_key_env, api_key_file } = provider ?? {};
    const details = [
      ...(api_key_env === undefined ? [] : [`needs the environment variable ${api_key_env}`]),
      ...(api_key_file === undefined ? [] : [`needs the file ${api_key_file}`]),
    ];
    return details.map((detail) => ({ name: id, status: "ok" as const, detail }));
  });
  return entries.some(({ provider }) => provider === undefined)
    ? [...named, { name: "others", status: "ok", detail: "need PROVIDER_URL and PROVIDER_API_KEY" }]
    : named;
}
