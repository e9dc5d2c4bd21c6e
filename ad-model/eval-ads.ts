/** `npm run eval:ads`: judges labelled prompts and answers and prints how many outcomes are as expected. */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { SHIPPED_CATALOG_FILE } from "../apps/ad-server/src/config.ts";
import { evaluateAlarms } from "./evaluation/evaluate-alarms.ts";
import { evaluateDevelopment } from "./evaluation/evaluate-development.ts";
import { evaluateFirst, evaluateOutcomes, evaluateSecond } from "./evaluation/evaluate-outcomes.ts";
import { evaluateSafety } from "./evaluation/evaluate-safety.ts";
import { evaluateVerdicts, verdictRows } from "./evaluation/evaluate-verdicts.ts";
import { loadAds } from "./evaluation/evaluated-catalogs.ts";
import { loadEvaluatedRules } from "./evaluation/evaluated-rules.ts";
import { type Evaluation, judgeOfAds } from "./evaluation/judge-prompts.ts";
import { parseLabelledOutcomes } from "./evaluation/labelled-outcomes.ts";
import { describeSummary, type SummaryRow } from "./evaluation/summary.ts";

const USAGE = `npm run eval:ads -- [options] [FILE...]

Judges labelled prompts and answers as the ad server does. Prints figures and every wrong line for these parts, and then
a table of all figures. Takes about half a minute.

  first     prompts for the shipped catalogue
  second    prompts for another catalogue, whose categories the shipped one lacks
  safety    sensitive sentences, alone and inside of harmless prompts
  alarms    harmless prompts that are rejected
  development
            sensitive sentences and harmless prompts by which the bars of safety are chosen
  verdicts  answers, and whether they use the ad

With FILE, it judges the prompts of these files instead. Each line of a FILE is a JSON object with id, prompt, language
(such as en), expect (fill, no_fill or reject) and categories (those of the catalogue that an ad may have; [] unless a fill
is expected), and optionally country, age, gender and why.

  --only PART    only this part; may be repeated
  --catalog FILE judge the prompts of FILEs by the ads of this catalogue instead of the shipped one
  --now DATE     judge the flights of ads by this day; default 2026-06-01
  --help         print this text

Exit code: 0, however many lines are wrong; 2 if a file can't be used (all faults are printed, with their lines) or an option
is wrong.
`;

const PARTS = {
  first: evaluateFirst,
  second: evaluateSecond,
  safety: evaluateSafety,
  alarms: evaluateAlarms,
  development: evaluateDevelopment,
  verdicts: async ({ print }: Evaluation) => verdictRows(evaluateVerdicts(print)),
} as const;
type Part = keyof typeof PARTS;
const isPart = (name: string): name is Part => Object.hasOwn(PARTS, name);

function fail(message: string): never {
  process.stderr.write(`${message}\n\n${USAGE}`);
  process.exit(2);
}

/** Reads a file that the caller names. Each fault of it is one line that begins with its name. */
function usable<T>(file: string, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const message = error instanceof Error ? error.message : "can't be read";
    process.stderr.write(message.replace(/^/gm, `${file}: `).concat("\n"));
    process.exitCode = 2;
    return undefined;
  }
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        only: { type: "string", multiple: true, default: [] },
        catalog: { type: "string" },
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
const nowMs = Date.parse(values.now);
if (Number.isNaN(nowMs)) {
  fail("--now must be a date such as 2026-06-01");
}
const parts = values.only.length === 0 ? Object.keys(PARTS) : values.only;
const chosen = parts.map((name) =>
  isPart(name) ? PARTS[name] : fail(`--only must be one of ${Object.keys(PARTS).join(", ")}`),
);
if (positionals.length > 0 && values.only.length > 0) {
  fail("--only chooses among the shipped sets and accepts no FILE");
}
if (positionals.length === 0 && values.catalog !== undefined) {
  fail("--catalog needs a FILE of prompts");
}
const catalogFile = values.catalog ?? SHIPPED_CATALOG_FILE;
const ads = positionals.length === 0 ? [] : usable(catalogFile, () => loadAds(catalogFile));
const known = ads && new Set(ads.map(({ category }) => category));
const files = positionals.map((file) => ({
  file,
  lines: usable(file, () => parseLabelledOutcomes(readFileSync(file, "utf8"), known)),
}));
if (process.exitCode !== undefined) {
  // All files are read by now, so that their faults are reported together.
  process.exit();
}

// A reader such as `head` closes the pipe early. That is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") {
    throw error;
  }
  process.exit(0);
});
const print = (line: string) => process.stdout.write(`${line}\n`);
const evaluation: Evaluation = { rules: await loadEvaluatedRules(), nowMs, print };
if (files.length > 0) {
  const judge = await judgeOfAds(ads ?? [], evaluation);
  for (const { file, lines = [] } of files) {
    evaluateOutcomes(file, { lines, judge, print });
  }
} else {
  const rows: SummaryRow[] = [];
  for (const evaluate of chosen) {
    rows.push(...(await evaluate(evaluation)));
  }
  print(`\n== all figures\n\n${describeSummary(rows)}`);
}
