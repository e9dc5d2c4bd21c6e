/** `npm run bench:ad-server`: the ad server's speed with many ads. Started by the bootstrap. */
import { measureAdServer } from "../bench/ad-server.ts";
import { runBenchmark } from "./bench/bench-run.ts";
import { parseBenchAdServerOptions } from "./bootstrap/command-line.mjs";

const EXIT_USAGE = 2;

const options = parseBenchAdServerOptions(process.argv.slice(2));
// The bootstrap has checked them: this is for a call of this file alone.
if (options.kind !== "run") {
  console.error("npm run bench:ad-server -- --help tells what it takes");
  process.exit(EXIT_USAGE);
}
const say = (line: string) => console.log(line);
await runBenchmark({
  name: "npm run bench:ad-server",
  say,
  measure: async (folder) => {
    await measureAdServer({ ...options, folder, say });
    return true;
  },
});
