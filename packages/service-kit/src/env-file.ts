/**
 * Files of settings, `.env`. `npm start`, `node --env-file` and docker compose read them, and each has its own rules for
 * comments, quotes, `$` and escapes. A file has one meaning if it uses only what all three read alike:
 *
 * 1. `NAME=value` in one line, without `$` or backquotes; ` #` after the value begins a comment.
 * 2. `NAME='value'`: the value is taken as it is, also `#`, `$` and blanks.
 * 3. `NAME="value"`, without `$` or backslash.
 *
 * Everything else is a fault. A fault names the line and the setting, never the value: it can be a secret.
 */
import { existsSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import type { FieldFault } from "@adrelay/contract";

const BYTE_ORDER_MARK = "\uFEFF";
const LINE = /^\s*(?:export\s+)?([A-Za-z_][\w.]*)\s*=[ \t]*(.*?)\s*$/;
const NOTHING = /^\s*(#.*)?$/;
const IN_SINGLE_QUOTES = /^'([^']*[^'\\])?'\s*(#.*)?$/;
const IN_DOUBLE_QUOTES = /^"[^"\\$]*"\s*(#.*)?$/;

export type EnvFileResult =
  | { readonly kind: "ok"; readonly values: Readonly<Record<string, string | undefined>> }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** Reads such a file. Rejects nothing: a file that can't be read is a fault, too. */
export function readEnvFile(file: string, name = file): EnvFileResult {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const why = error instanceof Error && "code" in error ? String(error.code) : "unknown fault";
    return { kind: "faulty", faults: [{ path: name, message: `can't be read (${why})` }] };
  }
  const faults = envFileFaults(text).map(({ path, message }) => ({ path: `${name} ${path}`, message }));
  return faults.length > 0 ? { kind: "faulty", faults } : { kind: "ok", values: parseEnv(text) };
}

/** The faults of the files that Node has read: `--env-file=FILE` and `--env-file-if-exists=FILE`. */
export function faultsOfNodesEnvFiles(nodeArgs: readonly string[]): readonly FieldFault[] {
  const files = nodeArgs.flatMap((arg, at) => {
    const option = /^--env-file(?:-if-exists)?(?:=(.*))?$/s.exec(arg);
    return option === null ? [] : [option[1] ?? nodeArgs[at + 1] ?? ""];
  });
  return files.filter(existsSync).flatMap((file) => {
    const read = readEnvFile(file);
    return read.kind === "faulty" ? read.faults : [];
  });
}

/** What programs would read differently. */
export function envFileFaults(text: string): FieldFault[] {
  if (text.startsWith(BYTE_ORDER_MARK)) {
    const message =
      "begins with a byte order mark, which hides the first name: save the file as UTF-8 without it";
    return [{ path: "line 1", message }, ...envFileFaults(text.slice(BYTE_ORDER_MARK.length))];
  }
  return text.split("\n").flatMap((line, at) => {
    const fault = faultOfLine(line);
    return fault === undefined ? [] : [{ ...fault, path: `line ${at + 1}${fault.path}` }];
  });
}

function faultOfLine(line: string): FieldFault | undefined {
  if (NOTHING.test(line)) {
    return undefined;
  }
  const [, name, value = ""] = LINE.exec(line) ?? [];
  if (name === undefined) {
    return { path: "", message: "must be NAME=value" };
  }
  const message = /=[ \t]+$/.test(line.trimStart().replace(/\r$/, ""))
    ? "has blanks after the = and no value: node takes the next line for it"
    : faultOfValue(value);
  return message === undefined ? undefined : { path: `, ${name}`, message };
}

const QUOTE_IT = "put the whole value in single quotes, in one line";

function faultOfValue(value: string): string | undefined {
  switch (value[0]) {
    case "'":
      return IN_SINGLE_QUOTES.test(value) ? undefined : `its quotes are read differently: ${QUOTE_IT}`;
    case '"':
      return IN_DOUBLE_QUOTES.test(value)
        ? undefined
        : `its quotes, $ or backslashes are read differently: ${QUOTE_IT}`;
    case "`":
      return `backquotes are read differently: ${QUOTE_IT}`;
    default: {
      const [bare = ""] = value.split(" #");
      if (bare.includes("#") || (bare === "" && value !== "")) {
        return `some programs take # for the begin of a comment: ${QUOTE_IT}`;
      }
      return bare.includes("$") ? `some programs replace what follows $: ${QUOTE_IT}` : undefined;
    }
  }
}
