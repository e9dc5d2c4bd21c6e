/** `npm run eval:ads`: judges labelled prompts and prints how many outcomes are as expected. */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { evaluateFolds, evaluateLines } from "./evaluation/evaluate.ts";
import { type LabelledOutcome, parseLabelledOutcomes, SHIPPED_SETS } from "./evaluation/labelled-outcomes.ts";

const USAGE = `npm run eval:ads -- [options] [FILE...]

Judges labelled prompts as the ad server does with RELEVANCE=lexical and the shipped catalogue. Prints, for English and
for the other languages, a confusion table, the category precision of fills, the recall of rejects and every wrong line.
Without FILE, it judges the shipped sets, ad-model/testdata/prompts-*.jsonl.

Each line of a FILE is a JSON object with id, prompt, language (such as en), expect (fill, no_fill or reject) and
categories (those that an ad may have; [] unless a fill is expected), and optionally country, age, gender and why.

  --folds N      cross-validate the prompt model on its training prompts in N parts (2 to 10); each takes half a minute
  --now DATE     judge the flights of ads by this day; default 2026-06-01
  --help         print this text

Exit code: 0, however many lines are wrong; 2 if a file can't be used or an option is wrong.
`;

const FOLDS_MAX = 10;

function fail(message: string): never {
  process.stderr.write(`${message}\n\n${USAGE}`);
  process.exit(2);
}

function readLines(file: string): LabelledOutcome[] {
  try {
    return parseLabelledOutcomes(readFileSync(file, "utf8"));
  } catch (error) {
    process.stderr.write(`${file}: ${error instanceof Error ? error.message : "can't be read"}\n`);
    process.exit(2);
  }
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        folds: { type: "string" },
        now: { type: "string", default: "2026-06-01" },
        help: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    return fail(error instanceof Error ? error.message : "these options can't be read");
  }
}

const { values, positionals } = readArguments();
if (values.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}
const folds = values.folds === undefined ? undefined : Number(values.folds);
if (folds !== undefined && !(Number.isInteger(folds) && folds >= 2 && folds <= FOLDS_MAX)) {
  fail(`--folds must be a whole number from 2 to ${FOLDS_MAX}`);
}
const nowMs = Date.parse(values.now);
if (Number.isNaN(nowMs)) {
  fail("--now must be a date such as 2026-06-01");
}
if (folds !== undefined && positionals.length > 0) {
  fail("--folds judges the training prompts and accepts no FILE");
}
const sets = (positionals.length > 0 ? positionals : SHIPPED_SETS).map((file) => ({
  file,
  lines: folds === undefined ? readLines(file) : [],
}));

// A reader such as `head` closes the pipe early. That is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") {
    throw error;
  }
  process.exit(0);
});
const print = (line: string) => process.stdout.write(`${line}\n`);
if (folds !== undefined) {
  await evaluateFolds(folds, print);
} else {
  for (const { file, lines } of sets) {
    print(`\n== ${file}`);
    await evaluateLines({ lines, nowMs, print });
  }
}
