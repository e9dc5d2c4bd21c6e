import { parseArgs } from "node:util";
import { readCatalogText } from "./catalog-file.ts";
import { type Finding, type LintOptions, lintCatalog } from "./lint-catalog.ts";

const LINT_USAGE = `Usage: npm run catalog -- lint [FILE] [--json] [--strict]

Checks a catalogue of ads as the ad server does when it reads one. If there are no errors, it warns about likely
mistakes.

  FILE      the file (default: CATALOG_FILE, or the shipped catalogue)
  --json    print the findings as JSON
  --strict  warnings count as errors
  --help    print this text

Exit code: 0 without errors, 1 with errors, 2 if the file can't be read or the command is wrong.
FLOOR_CPM_MICROS is the floor that bids are compared with.
`;

const EXIT = { clean: 0, errors: 1, unusable: 2 } as const;

interface LintDeps extends LintOptions {
  /** The file to check if the command names none. */
  readonly defaultFile: string;
  print(text: string): void;
  printError(text: string): void;
}

/** Runs `catalog lint`: prints what it finds and returns the exit code. */
export function runLint(words: readonly string[], deps: LintDeps): number {
  const command = parseWords(words);
  switch (command.kind) {
    case "help":
      deps.print(LINT_USAGE);
      return EXIT.clean;
    case "faulty":
      deps.printError(`${command.why}\n\n${LINT_USAGE}`);
      return EXIT.unusable;
    case "lint":
      return lint(command, deps);
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
      : { kind: "faulty", why: `lint accepts only one file, but there is also ${excess}` };
  } catch (error) {
    return { kind: "faulty", why: error instanceof Error ? error.message : "the command can't be parsed" };
  }
}

function lint({ file: named, json, strict }: LintCommand, deps: LintDeps): number {
  const file = named ?? deps.defaultFile;
  const read = readCatalogText(file);
  if (read.kind === "unreadable") {
    deps.printError(`${file} ${read.why}`);
    return EXIT.unusable;
  }
  const findings = lintCatalog(read.text, deps);
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const warnings = findings.length - errors;
  deps.print(
    json ? `${JSON.stringify({ file, errors, warnings, findings }, null, 2)}\n` : asText(file, findings),
  );
  return errors > 0 || (strict && warnings > 0) ? EXIT.errors : EXIT.clean;
}

function asText(file: string, findings: readonly Finding[]): string {
  const lines = findings.map(
    ({ severity, path, line, column, message }) =>
      `${file}:${line}:${column}: ${severity}: ${path === "" ? "" : `${path} `}${message}`,
  );
  const errors = findings.filter(({ severity }) => severity === "error").length;
  return `${[...lines, `${errors} errors, ${findings.length - errors} warnings`].join("\n")}\n`;
}
