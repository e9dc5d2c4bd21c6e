import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the ports that systems give to outgoing connections (from 32768 on, at the lowest): one of those can
 * be taken, by a client that looks for the very server, while the server is down for a moment.
 */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const TRIES = 20;

/** What this process has been given: until it listens there, a port looks free to the next who asks. */
const given = new Set<number>();

/**
 * A port of 127.0.0.1 that was free a moment ago, that no outgoing connection will take, and that nobody else
 * in this process is given.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const port = randomInt(LOWEST, HIGHEST);
    if (!given.has(port)) {
      // Before the look, which takes a moment.
      given.add(port);
      if (await isPortFree(port)) {
        return port;
      }
    }
  }
  return listenBriefly(0);
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
