/** `npm run bench`: Adrelay beside a naive version of it, and one table. The bootstrap starts it. */
import { provideRedis } from "@adrelay/dev-servers";
import { runBench } from "../bench/index.ts";
import { BENCH_COMMAND } from "../bench/options.mjs";
import { optionsOrExit } from "./bootstrap/command-line.mjs";
import { environment } from "./environment.ts";
import { longRun } from "./long-run.ts";

const NAME = "npm run bench";

const options = optionsOrExit(NAME, BENCH_COMMAND);
const say = options.isJson ? console.error : console.log;
// The CPU time and memory of a Redis can be measured only for a process of this machine.
environment["ADRELAY_TEST_REDIS"] = "local";
await longRun({
  name: NAME,
  run: async (folder) => (await provideRedis(say)) && runBench({ ...options, folder, say }),
});
