import { createServer } from "node:net";

/** A port of 127.0.0.1 that was free a moment ago. */
export function freePort(): Promise<number> {
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
