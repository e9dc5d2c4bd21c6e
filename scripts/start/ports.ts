import { createServer } from "node:net";

/** A port that a part of the stack will listen on. */
export interface WantedPort {
  readonly part: string;
  readonly host: string;
  readonly port: number;
  /** The setting that moves it elsewhere. */
  readonly setting: string;
}

/** Those of the wanted ports that can't be had, each as a line that names part, number and remedy. */
export async function takenPorts(wanted: readonly WantedPort[]): Promise<string[]> {
  const lines: string[] = [];
  for (const { part, host, port, setting } of wanted) {
    const why = await whyNotFree(host, port);
    if (why !== undefined) {
      lines.push(`port ${port} for the ${part} ${why}; choose another with ${setting}`);
    }
  }
  return lines;
}

/** Parts that are to listen on one and the same port, each pair as a line. */
export function equalPorts(wanted: readonly WantedPort[]): string[] {
  return wanted.flatMap((one, at) =>
    wanted
      .slice(at + 1)
      .filter(({ port }) => port === one.port)
      .map(
        (other) =>
          `the ${one.part} and the ${other.part} are both to listen on port ${one.port}; see ${other.setting}`,
      ),
  );
}

function whyNotFree(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) => {
      resolve(error.code === "EADDRINUSE" ? "is taken" : `can't be used (${error.code ?? error.message})`);
    });
    probe.listen(port, host, () => probe.close(() => resolve(undefined)));
  });
}
