import type { Request } from "express";

/** What a header says, by its name in lower case; Express' own `get` folds the name each time. */
export function headerOf({ headers }: Request, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "object" ? value[0] : value;
}
