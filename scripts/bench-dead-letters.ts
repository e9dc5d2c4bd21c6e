/** `npm run bench:dead-letters`: what an operator does with many dead letters. Started by the bootstrap. */
import { measureDeadLetters } from "../bench/dead-letters.ts";
import { runBenchmark } from "./bench/bench-run.ts";
import { parseBenchDeadLettersOptions } from "./bootstrap/command-line.mjs";
import { optionsOrExit } from "./options-or-exit.ts";

const NAME = "npm run bench:dead-letters";

const options = optionsOrExit(NAME, parseBenchDeadLettersOptions(process.argv.slice(2)));
const say = (line: string) => console.log(line);
await runBenchmark({
  name: NAME,
  say,
  measure: (folder) => measureDeadLetters({ ...options, folder, say }),
});
