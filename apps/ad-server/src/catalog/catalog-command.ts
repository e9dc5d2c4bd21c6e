import { parseArgs } from "node:util";
import { parseCatalogYaml, readCatalogText } from "./catalog-file.ts";
import { describeAds, explainAds } from "./explain-catalog.ts";
import { type Finding, type LintOptions, lintCatalog } from "./lint-catalog.ts";
import { parseCatalog } from "./load-catalog.ts";

const USAGE = `Usage: npm run catalog -- lint [FILE] [--json] [--strict]
       npm run catalog -- explain [FILE] [--json]

lint checks a catalogue of ads as the ad server does when it reads one. If there are no errors, it warns about likely
mistakes. explain prints for each ad what the ad server reads it as: the needs that it serves, and how surely. A prompt
finds an ad if the prompt is read as the same need.

  FILE      the file (default: CATALOG_FILE, or the shipped catalogue)
  --json    print JSON
  --strict  warnings count as errors
  --help    print this text

Exit code: 0 without errors, 1 with errors, 2 if the file can't be read or the command is wrong.
FLOOR_CPM_MICROS is the floor that bids are compared with.
`;

const EXIT = { clean: 0, errors: 1, unusable: 2 } as const;

interface CommandDeps extends LintOptions {
  /** The file to check if the command names none. */
  readonly defaultFile: string;
  print(text: string): void;
  printError(text: string): void;
}

/** Runs `catalog lint` or `catalog explain` and returns the exit code. */
export function runCatalogCommand(words: readonly string[], deps: CommandDeps): number {
  const command = parseWords(words);
  switch (command.kind) {
    case "help":
      deps.print(USAGE);
      return EXIT.clean;
    case "faulty":
      deps.printError(`${command.why}\n\n${USAGE}`);
      return EXIT.unusable;
    case "lint":
    case "explain":
      return runOnFile(command, deps);
    default:
      return command satisfies never;
  }
}

interface FileCommand {
  readonly kind: "lint" | "explain";
  readonly file: string | undefined;
  readonly json: boolean;
  readonly strict: boolean;
}

type ParsedWords =
  | { readonly kind: "help" }
  | { readonly kind: "faulty"; readonly why: string }
  | FileCommand;

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
    if (verb !== "lint" && verb !== "explain") {
      return { kind: "faulty", why: verb === undefined ? "no command given" : `unknown command: ${verb}` };
    }
    if (verb === "explain" && values.strict) {
      return { kind: "faulty", why: "explain has no --strict" };
    }
    return excess === undefined
      ? { kind: verb, file, json: values.json, strict: values.strict }
      : { kind: "faulty", why: `${verb} accepts only one file, but there is also ${excess}` };
  } catch (error) {
    return { kind: "faulty", why: error instanceof Error ? error.message : "the command can't be parsed" };
  }
}

function runOnFile(command: FileCommand, deps: CommandDeps): number {
  const file = command.file ?? deps.defaultFile;
  const read = readCatalogText(file);
  if (read.kind === "unreadable") {
    deps.printError(`${file} ${read.why}`);
    return EXIT.unusable;
  }
  return command.kind === "lint"
    ? lint(file, read.text, command, deps)
    : explain(file, read.text, command, deps);
}

function lint(file: string, text: string, { json, strict }: FileCommand, deps: CommandDeps): number {
  const findings = lintCatalog(text, deps);
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const warnings = findings.length - errors;
  deps.print(
    json ? `${JSON.stringify({ file, errors, warnings, findings }, null, 2)}\n` : asText(file, findings),
  );
  return errors > 0 || (strict && warnings > 0) ? EXIT.errors : EXIT.clean;
}

/** A catalogue with errors has no ads to explain: its errors are printed. */
function explain(file: string, text: string, { json }: FileCommand, deps: CommandDeps): number {
  const yaml = parseCatalogYaml(text);
  const parsed = yaml.kind === "parsed" ? parseCatalog(yaml.value) : undefined;
  if (parsed?.kind !== "ok") {
    deps.printError(asText(file, lintCatalog(text, deps)).trimEnd());
    return EXIT.errors;
  }
  const ads = explainAds(parsed.ads, deps.explain);
  deps.print(json ? `${JSON.stringify({ file, ads }, null, 2)}\n` : describeAds(ads));
  return EXIT.clean;
}

function asText(file: string, findings: readonly Finding[]): string {
  const lines = findings.map(
    ({ severity, path, line, column, message }) =>
      `${file}:${line}:${column}: ${severity}: ${path === "" ? "" : `${path} `}${message}`,
  );
  const errors = findings.filter(({ severity }) => severity === "error").length;
  return `${[...lines, `${errors} errors, ${findings.length - errors} warnings`].join("\n")}\n`;
}
