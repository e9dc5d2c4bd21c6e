import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { baseUrlSchema, headerKeySchema } from "@adrelay/contract";
import { z } from "zod";
import { EXIT, type ExitCode } from "./exit-codes.ts";

export const DEFAULT_URL = "http://127.0.0.1:8081";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface ConnectionSources {
  /** --url and --token-file. */
  readonly url: string | undefined;
  readonly tokenFile: string | undefined;
  readonly env: Environment;
  /** Where relative paths start. */
  readonly cwd: string;
  /** Folders in which a stack of `npm start` may keep its files. */
  readonly stackHomes: readonly string[];
}

export type ConnectionResult =
  | { readonly kind: "found"; readonly url: string; readonly token: string }
  | { readonly kind: "faulty"; readonly exit: ExitCode; readonly message: string };

/**
 * Which gateway to call, and with which token. The token of a local stack goes to that stack alone: an address
 * that was named needs a token that was named.
 */
export function findConnection(sources: ConnectionSources): ConnectionResult {
  const { url: option, env } = sources;
  const named = option ?? filled(env["ADRELAY_URL"]);
  const stack = named === undefined ? findStack(sources.stackHomes) : undefined;
  const url = named ?? stack?.gatewayOps ?? DEFAULT_URL;
  if (!baseUrlSchema.safeParse(url).success) {
    const message = `${option === undefined ? "ADRELAY_URL" : "--url"} must be an http:// or https:// URL`;
    return { kind: "faulty", exit: EXIT.usage, message };
  }
  const fromFile = readTokenFile(sources);
  if (fromFile.kind === "unreadable") {
    return { kind: "faulty", exit: EXIT.usage, message: `--token-file ${fromFile.why}` };
  }
  const token =
    fromFile.token ?? filled(env["ADRELAY_ADMIN_TOKEN"]) ?? filled(env["ADMIN_TOKEN"]) ?? stack?.adminToken;
  if (token === undefined) {
    const where = named === undefined ? `${url}, and no \`npm start\` runs here` : url;
    const message = `No token for ${where}. Set ADRELAY_ADMIN_TOKEN to the gateway's ADMIN_TOKEN, or name a file with --token-file.`;
    return { kind: "faulty", exit: EXIT.denied, message };
  }
  return headerKeySchema.safeParse(token).success
    ? { kind: "found", url, token }
    : { kind: "faulty", exit: EXIT.usage, message: "The token must be printable ASCII without blanks." };
}

const runFileSchema = z.object({
  gatewayOps: z.string(),
  adminToken: z.string().min(1),
  pids: z.looseObject({ start: z.number() }),
});

/** The stack of `npm start` that runs in one of these folders; a file that a killed one left is passed over. */
function findStack(homes: readonly string[]): z.infer<typeof runFileSchema> | undefined {
  for (const home of homes) {
    try {
      const file = readFileSync(join(home, "run.json"), "utf8");
      const stack = runFileSchema.parse(JSON.parse(file));
      process.kill(stack.pids.start, 0);
      return stack;
    } catch {
      // No stack here.
    }
  }
  return undefined;
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

function filled(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === "" ? undefined : text.trim();
}
