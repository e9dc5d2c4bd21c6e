/** What the parser finds fault with, and how it says so. */
import { UsageError } from "./exit-codes.ts";

/** The parser's complaints in words of the command line: ids are all that is ever wanted besides options. */
export const COMPLAINTS = {
  "Not enough non-option arguments: got %s, need at least %s": inBoth("ids: %s given, at least %s wanted"),
  "Missing required argument: %s": inBoth("--%s is missing"),
  "Unknown argument: %s": inBoth("%s is not known here"),
  "Not enough arguments following: %s": "--%s wants a value",
} as const;

/** One text for one of a kind and for several. */
function inBoth(text: string): { readonly one: string; readonly other: string } {
  return { one: text, other: text };
}

/** The parser's own complaints come as a message; what our checks of values throw it wraps in its own error. */
export function isUsageFault(error: Error | undefined): boolean {
  return error === undefined || error instanceof UsageError || error.name === "YError";
}

/** The parser makes a list of what is given twice; only the ids are one. */
export function checkOnce(args: Readonly<Record<string, unknown>>): true {
  const twice = Object.entries(args).find(
    ([name, value]) => Array.isArray(value) && name !== "_" && name !== "ids",
  );
  if (twice !== undefined) {
    throw new UsageError(`--${twice[0]} was given more than once`);
  }
  return true;
}
