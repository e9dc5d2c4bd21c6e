/** The fuzzer for `npm run fuzz` and the test. */
export { runFuzz } from "./run-fuzz.ts";
