/** `npm run fuzz`: generated requests over the OpenAPI documents, and one table. The bootstrap starts it. */
import { provideRedis } from "@adrelay/dev-servers";
import { runFuzz } from "../e2e/fuzz/index.ts";
import { FUZZ_COMMAND } from "../e2e/fuzz/options.mjs";
import { optionsOrExit } from "./bootstrap/command-line.mjs";
import { longRun } from "./long-run.ts";

const NAME = "npm run fuzz";
/** More than a run has time for. */
const CASES_MAX = 1000;

const say = (line: string) => console.log(line);
const { minutes, seed } = optionsOrExit(NAME, FUZZ_COMMAND);

await longRun({ name: NAME, run: async () => (await provideRedis(say)) && (await fuzz()) });

/** Resolves to whether every answer was as the documents say. */
async function fuzz(): Promise<boolean> {
  const secondsPerDocument = Math.ceil(minutes * 60);
  const outcome = await runFuzz({ secondsPerDocument, casesMax: CASES_MAX, seed, say });
  if (outcome.kind === "not_run") {
    say(`${NAME}: schemathesis can't be had here: ${outcome.why}`);
    return false;
  }
  for (const { report } of outcome.results.filter(({ hasPassed }) => !hasPassed)) {
    say(report);
  }
  for (const { name, cases, operations, hasPassed } of outcome.results) {
    say(
      `${name}: ${cases} cases of ${operations} operations, ${hasPassed ? "no failure" : "FAILURES (see above)"}`,
    );
  }
  return outcome.results.every(({ hasPassed }) => hasPassed);
}
