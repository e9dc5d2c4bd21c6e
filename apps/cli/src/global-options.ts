import type { Argv } from "yargs";
import { UsageError } from "./exit-codes.ts";
import { parseSpanMs } from "./moments.ts";

const DEFAULT_TIMEOUT = "10s";

/** Timers can't be set much further than three weeks. */
const TIMEOUT_MAX_MS = 86_400_000;

/** Options that every command has. */
export const GLOBAL_OPTIONS = ["url", "token-file", "json", "timeout"] as const;

export function addGlobals(parser: Argv<object>): Argv<object> {
  return parser
    .option("url", {
      type: "string",
      requiresArg: true,
      describe:
        "The gateway's ops listener (default: ADRELAY_URL, a running npm start, or http://127.0.0.1:8081)",
    })
    .option("token-file", {
      type: "string",
      requiresArg: true,
      describe:
        "File with the admin token (default: ADRELAY_ADMIN_TOKEN, ADMIN_TOKEN, or a running npm start's)",
    })
    .option("json", {
      type: "boolean",
      default: false,
      describe: "Print what the API answers, and nothing else",
    })
    .option("timeout", {
      type: "string",
      requiresArg: true,
      default: DEFAULT_TIMEOUT,
      describe: "How long one answer may take",
      coerce: parseTimeout,
    });
}

function parseTimeout(text: string): number {
  const timeoutMs = parseSpanMs(text);
  if (timeoutMs === undefined || timeoutMs < 1 || timeoutMs > TIMEOUT_MAX_MS) {
    throw new UsageError("--timeout wants a span such as 500ms or 30s, a day at most");
  }
  return timeoutMs;
}
