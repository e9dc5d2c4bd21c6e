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

await longRun({
  name: NAME,
  run: async (_folder, signal) => (await provideRedis(say)) && (await fuzz(signal)),
});

/** Resolves to whether every answer was as the documents say. Once the signal has fired, it reports nothing. */
async function fuzz(signal: AbortSignal): Promise<boolean> {
  const secondsPerDocument = Math.ceil(minutes * 60);
  const outcome = await runFuzz({ secondsPerDocument, casesMax: CASES_MAX, seed, signal, say });
  if (signal.aborted) {
    return false;
  }
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
