import { EXIT } from "./exit-codes.ts";
import { type CliProcess, type Place, runCli } from "./run-cli.ts";

/** What of a process the command needs. */
export interface HostProcess extends Pick<CliProcess, "env"> {
  readonly argv: readonly string[];
  readonly stdin: CliProcess["streams"]["stdin"];
  readonly stdout: CliProcess["streams"]["stdout"];
  readonly stderr: CliProcess["streams"]["stderr"];
  exitCode?: NodeJS.Process["exitCode"];
  cwd(): string;
  exit(code: number): never;
  on(signal: "SIGINT" | "SIGTERM", listener: () => void): unknown;
}

/** The command by itself, anywhere. */
export const INSTALLED: Place = { calledAs: "adrelay", stackHomes: [] };

/** Time for what is interrupted to say so. */
const LEAVE_TIMEOUT_MS = 2000;

/** The whole of a process; it ends by itself once its output is out. */
export async function runProcess(host: HostProcess, place: Place = INSTALLED): Promise<void> {
  const { env, stdin, stdout, stderr } = host;
  const interruption = new AbortController();
  const interrupt = () => {
    interruption.abort();
    setTimeout(() => host.exit(EXIT.interrupted), LEAVE_TIMEOUT_MS).unref();
  };
  // A terminal and whoever started us may both send it.
  host.on("SIGINT", interrupt);
  host.on("SIGTERM", interrupt);
  // A reader that has seen enough, as `head`, is no fault.
  stdout.on("error", () => host.exit(EXIT.done));
  stderr.on("error", () => {});
  host.exitCode = await runCli({
    words: host.argv.slice(2),
    env,
    cwd: host.cwd(),
    streams: { stdin, stdout, stderr },
    place,
    signal: interruption.signal,
  });
}
