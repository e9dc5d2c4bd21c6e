/** Programs of this machine: found on PATH, run to their end, installed, and stopped if this process dies. */
import { type ChildProcess, type SpawnOptions, type StdioOptions, spawn } from "node:child_process";
import { accessSync, constants, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { delimiter, join } from "node:path";
import type { Readable } from "node:stream";

/** A program with its arguments. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
}

export type CommandResult =
  | { readonly kind: "ok"; readonly stdout: string }
  | { readonly kind: "failed"; readonly why: string };

export interface CommandOptions {
  readonly timeoutMs: number;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Kills the program once it aborts, as the limit of time does. */
  readonly signal?: AbortSignal | undefined;
}

/** Enough for any answer that we read. Of a longer one we need the end, which says why the program failed. */
const OUTPUT_CHARS_MAX = 64 * 1024;
/** A program may leave child processes behind that hold its pipes open. We don't wait for them. */
const PIPES_GRACE_MS = 500;

/** All executable files on PATH with one of these names: in the order of the names, then of PATH. */
export function executablesOnPath(env: NodeJS.ProcessEnv, names: readonly string[]): readonly string[] {
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).filter(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Runs a program to its end and captures its output. Never rejects: `why` is the last line that the program wrote, or
 * the reason why it didn't run.
 */
export function runCommand(
  program: string,
  args: readonly string[],
  { timeoutMs, env, signal }: CommandOptions,
): Promise<CommandResult> {
  if (signal?.aborted) {
    return Promise.resolve({ kind: "failed", why: `${program} was aborted` });
  }
  const stdio: StdioOptions = ["ignore", "pipe", "pipe"];
  const child = trySpawn(program, args, {
    ...{ stdio, timeout: timeoutMs, killSignal: "SIGKILL" },
    ...(env && { env }),
  });
  if (child instanceof Error) {
    return Promise.resolve({ kind: "failed", why: describeSpawnError(program, child) });
  }
  const stdout = collectText(child.stdout);
  const stderr = collectText(child.stderr);
  const startedMs = performance.now();
  const kill = () => child.kill("SIGKILL");
  signal?.addEventListener("abort", kill);
  child.once("close", () => signal?.removeEventListener("abort", kill));
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ kind: "failed", why: describeSpawnError(program, error) }));
    child.once("exit", () => setTimeout(() => closePipes(child), PIPES_GRACE_MS).unref());
    child.once("close", (code, killedBy) => {
      const isLate = killedBy === "SIGKILL" && performance.now() - startedMs >= timeoutMs;
      if (code === 0) {
        resolve({ kind: "ok", stdout: stdout() });
      } else if (signal?.aborted) {
        resolve({ kind: "failed", why: `${program} was aborted` });
      } else if (isLate) {
        resolve({ kind: "failed", why: `${program} took longer than ${timeoutMs / 1000} s` });
      } else {
        const lastWords = lastLine(stderr()) || lastLine(stdout());
        resolve({ kind: "failed", why: lastWords || `${program} ended with ${code ?? killedBy}` });
      }
    });
  });
}

/** Node throws a few reasons not to start a program, and reports the others in an event. */
function trySpawn(program: string, args: readonly string[], options: SpawnOptions): ChildProcess | Error {
  try {
    return spawn(program, args, options);
  } catch (error) {
    return error instanceof Error ? error : new TypeError(String(error));
  }
}

function collectText(stream: Readable | null): () => string {
  let text = "";
  stream?.setEncoding("utf8").on("data", (more: string) => {
    text = `${text}${more}`.slice(-OUTPUT_CHARS_MAX);
  });
  return () => text;
}

function closePipes({ stdout, stderr }: ChildProcess): void {
  stdout?.destroy();
  stderr?.destroy();
}

function describeSpawnError(program: string, error: Error): string {
  const isMissing = "code" in error && error.code === "ENOENT";
  return isMissing ? `${program} is not installed` : error.message;
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1)?.trim() ?? "";
}

/** Waits for the end of its input, which comes when the process at the other end dies. Then runs the command. */
const GUARDIAN_SCRIPT = 'read -r _; "$@"';

/**
 * Stops a server whose owner was killed and so could not stop it. A small shell holds a pipe to this process and runs
 * the command once the pipe breaks. The shell has its own process group, so Ctrl-C doesn't reach it.
 *
 * @returns ends the guard
 */
export function guardAgainstOrphaning(stopServer: Command): () => void {
  const shell = spawn("sh", ["-c", GUARDIAN_SCRIPT, "sh", stopServer.program, ...stopServer.args], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  // Without a shell there is no guard. The server runs nevertheless.
  shell.once("error", () => {});
  shell.stdin.once("error", () => {});
  // Neither the shell nor its pipe may keep this process alive.
  shell.unref();
  if (shell.stdin instanceof Socket) {
    shell.stdin.unref();
  }
  // The kill comes first: if the pipe closed first, the shell would take it for the owner's death.
  return () => {
    shell.kill("SIGKILL");
    shell.stdin.destroy();
  };
}

/** `couldBe`: the package archives answered, so the fault is this machine's or that of its apt. */
export type Installation =
  | { readonly kind: "installed" }
  | { readonly kind: "not_installed"; readonly why: string; readonly couldBe: boolean };

export interface InstallOptions {
  /** Receives a line before the installation, which is slow. */
  readonly log: (line: string) => void;
  readonly env: NodeJS.ProcessEnv;
  /** Ends it while nothing is installed yet. */
  readonly signal?: AbortSignal | undefined;
  /** The file that keeps services from starting; the default is Debian's. */
  readonly policyFile?: string;
}

const INSTALL_TIMEOUT_MS = 240_000;
/** Another search may be installing at the same moment. */
const LOCK_TIMEOUT_SECONDS = 120;
/** While this file says no, Debian's packages don't start the services that they bring. */
const POLICY_FILE = "/usr/sbin/policy-rc.d";
const POLICY =
  "#!/bin/sh\n# Temporary: Adrelay installs a server without starting it as a service.\nexit 101\n";

/** Installs a Debian package with apt-get, without starting its service. Needs root. Never rejects. */
export async function installDebianPackage(name: string, options: InstallOptions): Promise<Installation> {
  if (process.getuid?.() !== 0) {
    return { kind: "not_installed", why: "apt-get needs root", couldBe: false };
  }
  if (executablesOnPath(options.env, ["apt-get"]).length === 0) {
    return { kind: "not_installed", why: "apt-get is not installed", couldBe: false };
  }
  try {
    return await installWithApt(name, options);
  } catch (error) {
    // A system whose folders can't be written, such as an image that is read only.
    const why = error instanceof Error ? error.message : String(error);
    return { kind: "not_installed", why, couldBe: false };
  }
}

async function installWithApt(
  name: string,
  { log, env, signal, policyFile = POLICY_FILE }: InstallOptions,
): Promise<Installation> {
  const apt = (args: readonly string[], abort?: AbortSignal) =>
    runCommand("apt-get", ["-qq", "-o", `DPkg::Lock::Timeout=${LOCK_TIMEOUT_SECONDS}`, ...args], {
      timeoutMs: INSTALL_TIMEOUT_MS,
      env: { ...env, DEBIAN_FRONTEND: "noninteractive" },
      signal: abort,
    });
  // This mode makes an archive that can't be reached an error. The installation is tried nevertheless: what apt knows
  // of the other archives may be enough.
  const update = await apt(["-o", "APT::Update::Error-Mode=any", "update"], signal);
  log(`installing ${name} with apt-get`);
  const install = ["install", "-y", "--no-install-recommends", name];
  const fetched = await apt([...install, "--download-only"], signal);
  // To install takes seconds. If it were interrupted, the package would be left half configured.
  const installed = fetched.kind === "ok" ? await withoutServices(policyFile, () => apt(install)) : fetched;
  return installed.kind === "ok"
    ? { kind: "installed" }
    : { kind: "not_installed", why: installed.why, couldBe: update.kind === "ok" };
}

async function withoutServices<T>(policyFile: string, install: () => Promise<T>): Promise<T> {
  const present = readPolicy(policyFile);
  // Remove a policy only if we wrote it, now or in an interrupted run. The machine's own policy stays.
  const isOurs = present === undefined || present === POLICY;
  if (isOurs) {
    writeFileSync(policyFile, POLICY, { mode: 0o755 });
  }
  try {
    return await install();
  } finally {
    if (isOurs) {
      rmSync(policyFile, { force: true });
    }
  }
}

function readPolicy(policyFile: string): string | undefined {
  try {
    return readFileSync(policyFile, "utf8");
  } catch {
    return undefined;
  }
}
