/** What a command works with: the gateway to call, the token, the client and the terminal. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { baseUrlSchema, headerKeySchema } from "@adrelay/contract";
import { z } from "zod";
import type { AdminCall, AdminClient, Answer } from "./admin-client.ts";
import { EXIT, type ExitCode, exitOf, type Failure } from "./exit-codes.ts";
import { printable, type Terminal } from "./terminal.ts";

/** What every command has. */
export interface LocalSession {
  readonly terminal: Terminal;
  /** How to call the command, for hints. */
  readonly calledAs: string;
  /** Whether to print the API's answers unchanged. */
  readonly isJson: boolean;
  readonly env: Environment;
  /** How long to wait for one answer. */
  readonly timeoutMs: number;
  /** For how long a command goes on while the gateway is unavailable. */
  readonly patienceMs: number;
  /** Fires at Ctrl-C. */
  readonly signal: AbortSignal;
  now(): number;
}

/** What a command has that calls the admin API. */
export interface Session extends LocalSession {
  readonly client: AdminClient;
  readonly relay: RelayAddress;
}

/** The gateway that a command talks to, for operators. */
interface RelayAddress {
  readonly url: string;
  /** Where the address comes from, such as `ADRELAY_URL`. */
  readonly source: string;
}

/** Calls the API and shows the answer: unchanged with --json, else through `render`. */
export async function showCall<T>(
  session: Session,
  call: AdminCall<T>,
  render: (value: T) => void,
): Promise<ExitCode> {
  return showAnswer(session, await session.client.call(call), render);
}

export function showAnswer<T>(session: Session, answer: Answer<T>, render: (value: T) => void): ExitCode {
  if (answer.kind === "failed") {
    return showFailure(session, answer.failure);
  }
  if (session.isJson) {
    session.terminal.print(answer.text);
  } else {
    render(answer.value);
  }
  return EXIT.done;
}

/** Explains a failure on standard error. With --json the API's own error answer goes to standard output. */
export function showFailure({ terminal, isJson }: Session, failure: Failure): ExitCode {
  if (isJson && failure.text !== undefined) {
    terminal.print(failure.text);
  }
  terminal.note(`adrelay: ${printable(failure.message)}`);
  return exitOf(failure);
}

/** Asks the operator, unless --yes was given. Returns `done` for a yes, else the exit code to end with. */
export async function confirm(
  { terminal, signal }: Session,
  isYes: boolean,
  question: string,
): Promise<ExitCode> {
  if (isYes) {
    return EXIT.done;
  }
  if (!terminal.canAsk) {
    terminal.note(
      "adrelay: this command asks for confirmation, but there is no terminal. Add --yes to confirm.",
    );
    return EXIT.usage;
  }
  const answer = await terminal.confirm(question, signal);
  if (answer !== "yes") {
    terminal.note("Nothing was changed.");
  }
  return { yes: EXIT.done, no: EXIT.refused, interrupted: EXIT.interrupted }[answer];
}

const DEFAULT_URL = "http://127.0.0.1:8081";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ConnectionSources {
  /** Values of --url and --token-file. */
  readonly url: string | undefined;
  readonly tokenFile: string | undefined;
  readonly env: Environment;
  /** The folder that relative paths start from. */
  readonly cwd: string;
  /** Folders in which a stack of `npm start` may keep its files. */
  readonly stackHomes: readonly string[];
}

export type ConnectionResult =
  | { readonly kind: "found"; readonly relay: RelayAddress; readonly token: string }
  | { readonly kind: "faulty"; readonly exit: ExitCode; readonly message: string };

/**
 * Decides which gateway to call and with which token. The token of a local stack is sent only to that stack: if the
 * operator gives another address, the operator must give a token too.
 */
export function findConnection(sources: ConnectionSources): ConnectionResult {
  const { url: option, env } = sources;
  const given = option ?? filled(env["ADRELAY_URL"]);
  const stack = findStack(sources.stackHomes, given);
  const url = given ?? stack?.run.gatewayOps ?? DEFAULT_URL;
  const sourceOfGiven = option === undefined ? "ADRELAY_URL" : "--url";
  if (!baseUrlSchema.safeParse(url).success) {
    const message = `${sourceOfGiven} must be an http:// or https:// URL`;
    return { kind: "faulty", exit: EXIT.usage, message };
  }
  const fromFile = readTokenFile(sources);
  if (fromFile.kind === "unreadable") {
    return { kind: "faulty", exit: EXIT.usage, message: `--token-file ${fromFile.why}` };
  }
  const token =
    fromFile.token ??
    filled(env["ADRELAY_ADMIN_TOKEN"]) ??
    filled(env["ADMIN_TOKEN"]) ??
    stack?.run.adminToken;
  if (token === undefined) {
    const where = given === undefined ? `${url}, and no \`npm start\` is running here` : url;
    const message = `No token for ${where}. Set ADRELAY_ADMIN_TOKEN to the gateway's ADMIN_TOKEN, or give a file with --token-file.`;
    return { kind: "faulty", exit: EXIT.denied, message };
  }
  const local = stack === undefined ? "the default" : `npm start, ${stack.file}`;
  const source = given === undefined ? local : sourceOfGiven;
  return headerKeySchema.safeParse(token).success
    ? { kind: "found", relay: { url, source }, token }
    : { kind: "faulty", exit: EXIT.usage, message: "The token must be printable ASCII without blanks." };
}

const runFileSchema = z.object({
  gatewayOps: z.string(),
  adminToken: z.string().min(1),
  pids: z.looseObject({ start: z.number() }),
});

/**
 * The stack of `npm start` that runs in one of these folders, and has this address if one is given. The file of a stack that
 * was killed is ignored.
 */
function findStack(
  homes: readonly string[],
  given: string | undefined,
): { readonly file: string; readonly run: z.infer<typeof runFileSchema> } | undefined {
  for (const home of homes) {
    try {
      const file = join(home, "run.json");
      const run = runFileSchema.parse(JSON.parse(readFileSync(file, "utf8")));
      // Signal 0 only checks that the process exists: it throws if there is none.
      process.kill(run.pids.start, 0);
      if (given === undefined || isSameAddress(given, run.gatewayOps)) {
        return { file, run };
      }
    } catch {
      // No stack runs from this folder.
    }
  }
  return undefined;
}

/** The whole address counts: another name of the same machine may lead to something else. */
function isSameAddress(one: string, other: string): boolean {
  const plain = (url: string) => (URL.canParse(url) ? new URL(url).href.replace(/\/+$/, "") : undefined);
  const address = plain(one);
  return address !== undefined && address === plain(other);
}

function readTokenFile({
  tokenFile,
  cwd,
}: ConnectionSources):
  | { readonly kind: "read"; readonly token: string | undefined }
  | { readonly kind: "unreadable"; readonly why: string } {
  if (tokenFile === undefined) {
    return { kind: "read", token: undefined };
  }
  try {
    const token = readFileSync(resolve(cwd, tokenFile), "utf8").trim();
    return token === "" ? { kind: "unreadable", why: "is empty" } : { kind: "read", token };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown fault";
    return { kind: "unreadable", why: `can't be read (${code})` };
  }
}

/** Settings that are empty or blank count as not set. */
function filled(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === "" ? undefined : text.trim();
}
