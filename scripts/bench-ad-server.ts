/** `npm run bench:ad-server`: the ad server's speed with many ads. Started by the bootstrap. */
import { measureAdServer } from "../bench/ad-server.ts";
import { runBenchmark } from "./bench/bench-run.ts";
import { parseBenchAdServerOptions } from "./bootstrap/command-line.mjs";
import { optionsOrExit } from "./options-or-exit.ts";

const NAME = "npm run bench:ad-server";

const options = optionsOrExit(NAME, parseBenchAdServerOptions(process.argv.slice(2)));
const say = (line: string) => console.log(line);
await runBenchmark({
  name: NAME,
  say,
  measure: async (folder) => {
    await measureAdServer({ ...options, folder, say });
    return true;
  },
});
