import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { LintOptions } from "./catalog-warnings.ts";
import { type Finding, lintCatalog } from "./lint-catalog.ts";

export const LINT_USAGE = `Usage: npm run catalog -- lint [FILE] [--json] [--strict]

Checks a catalogue of ads as the ad server does when it reads one, and tells what is hardly meant besides.

  FILE      the file (default: CATALOG_FILE, or the catalogue that is shipped)
  --json    print the findings as JSON
  --strict  warnings count as errors
  --help    this text

Exit code: 0 without errors, 1 with errors, 2 if the file can't be read or the command can't be meant.
FLOOR_CPM_MICROS sets the floor that bids are held against.
`;

const EXIT = { clean: 0, errors: 1, unusable: 2 } as const;

export interface LintSurroundings extends LintOptions {
  /** The file to check unless one is named. */
  readonly defaultFile: string;
  print(text: string): void;
  complain(text: string): void;
}

/** `catalog lint`: prints what it finds, and answers with the exit code. */
export function runLint(words: readonly string[], surroundings: LintSurroundings): number {
  const command = parseWords(words);
  switch (command.kind) {
    case "help":
      surroundings.print(LINT_USAGE);
      return EXIT.clean;
    case "faulty":
      surroundings.complain(`${command.why}\n\n${LINT_USAGE}`);
      return EXIT.unusable;
    case "lint":
      return lint(command, surroundings);
    default:
      return command satisfies never;
  }
}

interface LintCommand {
  readonly kind: "lint";
  readonly file: string | undefined;
  readonly json: boolean;
  readonly strict: boolean;
}

type ParsedWords =
  | { readonly kind: "help" }
  | { readonly kind: "faulty"; readonly why: string }
  | LintCommand;

function parseWords(words: readonly string[]): ParsedWords {
  const flag = { type: "boolean", default: false } as const;
  try {
    const { values, positionals } = parseArgs({
      args: [...words],
      options: { json: flag, strict: flag, help: { ...flag, short: "h" } },
      allowPositionals: true,
    });
    const [verb, file, excess] = positionals;
    if (values.help) {
      return { kind: "help" };
    }
    if (verb !== "lint") {
      return { kind: "faulty", why: verb === undefined ? "no command given" : `unknown command: ${verb}` };
    }
    return excess === undefined
      ? { kind: "lint", file, json: values.json, strict: values.strict }
      : { kind: "faulty", why: `lint takes one file, not ${excess} too` };
  } catch (error) {
    return { kind: "faulty", why: error instanceof Error ? error.message : "the command can't be read" };
  }
}

function lint({ file: named, json, strict }: LintCommand, surroundings: LintSurroundings): number {
  const file = named ?? surroundings.defaultFile;
  const read = readText(file);
  if (read.kind === "failed") {
    surroundings.complain(`${file}: the file can't be read: ${read.why}`);
    return EXIT.unusable;
  }
  const findings = lintCatalog(read.text, surroundings);
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const warnings = findings.length - errors;
  surroundings.print(
    json ? `${JSON.stringify({ file, errors, warnings, findings }, null, 2)}\n` : asText(file, findings),
  );
  return errors > 0 || (strict && warnings > 0) ? EXIT.errors : EXIT.clean;
}

function readText(file: string): { kind: "read"; text: string } | { kind: "failed"; why: string } {
  try {
    return { kind: "read", text: readFileSync(file, "utf8") };
  } catch (error) {
    return { kind: "failed", why: error instanceof Error ? error.message : String(error) };
  }
}

function asText(file: string, findings: readonly Finding[]): string {
  const lines = findings.map(
    ({ severity, path, line, column, message }) =>
      `${file}:${line}:${column}: ${severity}: ${path === "" ? "" : `${path} `}${message}`,
  );
  const errors = findings.filter(({ severity }) => severity === "error").length;
  return `${[...lines, `${errors} errors, ${findings.length - errors} warnings`].join("\n")}\n`;
}
