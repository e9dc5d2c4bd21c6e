import { freePort } from "@adrelay/local-redis";

/** More than the test files that ever run at once. */
const LANES = 8;

/** Each of vitest's workers that run at once has its own number, from 1 on. */
const LANE = Number(process.env["VITEST_POOL_ID"] ?? 0) % LANES;

/**
 * A free port of 127.0.0.1 that no test file beside this one is given: until a process listens on it, and again
 * while a killed one is down, the port looks free to all who ask.
 */
export async function freeLanePort(): Promise<number> {
  const port = await freePort();
  return port % LANES === LANE ? port : freeLanePort();
}
