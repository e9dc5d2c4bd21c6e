/** `npm run bench:dead-letters`: what an operator does with many dead letters. Started by the bootstrap. */
import { measureDeadLetters } from "../bench/dead-letters.ts";
import { runBenchmark } from "./bench/bench-run.ts";
import { parseBenchDeadLettersOptions } from "./bootstrap/command-line.mjs";

const EXIT_USAGE = 2;

const options = parseBenchDeadLettersOptions(process.argv.slice(2));
// The bootstrap has checked them: this is for a call of this file alone.
if (options.kind !== "run") {
  console.error("npm run bench:dead-letters -- --help tells what it takes");
  process.exit(EXIT_USAGE);
}
const say = (line: string) => console.log(line);
await runBenchmark({
  name: "npm run bench:dead-letters",
  say,
  measure: (folder) => measureDeadLetters({ ...options, folder, say }),
});
