/** Free TCP ports of 127.0.0.1, for servers and processes that are started in parallel. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { environment, TEST_WORKER_VARIABLE } from "./environment.ts";

/**
 * The range lies below the ports that systems give to outgoing connections (from 32768 at the lowest). A client that
 * connects to a server again and again could take one of those ports while the server is down for a moment.
 */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const TRIES = 20;

/** More than the number of test files that ever run at the same time. */
const LANES = 8;
const LANE = Number(environment[TEST_WORKER_VARIABLE] ?? 0) % LANES;

/** Ports already returned by this process: a port looks free until somebody listens on it. */
const given = new Set<number>();

/**
 * Returns a port of 127.0.0.1 that was free a moment ago. No outgoing connection will take it, and no other caller in
 * this process gets it. Another process may still take it.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const port = randomInt(LOWEST, HIGHEST);
    if (!given.has(port)) {
      // Reserved before the check, because the check takes a moment.
      given.add(port);
      if (await isPortFree(port)) {
        return port;
      }
    }
  }
  return listenBriefly(0);
}

/**
 * Like `freePort`, for tests: no test file that runs in parallel gets this port. It matters because a port looks free
 * before its process listens, and again while a killed process is down.
 */
export async function freeLanePort(): Promise<number> {
  const port = await freePort();
  return port % LANES === LANE ? port : freeLanePort();
}

/** Whether nobody listens on a port of 127.0.0.1. */
export async function isPortFree(port: number): Promise<boolean> {
  try {
    await listenBriefly(port);
    return true;
  } catch {
    return false;
  }
}

function listenBriefly(port: number): Promise<number> {
  return new Promise((done, fail) => {
    const probe = createServer();
    probe.once("error", fail);
    probe.listen(port, "127.0.0.1", () => {
      const address = probe.address();
      const taken = typeof address === "object" && address !== null ? address.port : port;
      probe.close(() => done(taken));
    });
  });
}
