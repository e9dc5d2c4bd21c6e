/** The benchmark, for `npm run bench`. */
export { runBench } from "./run-bench.ts";
