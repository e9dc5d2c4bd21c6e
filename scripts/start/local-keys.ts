import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** Keys of the local stack. They are kept: the data belong to them. */
export interface LocalKeys {
  readonly apiKey: string;
  readonly providerKey: string;
  readonly adminToken: string;
}

/** Loads the keys, or makes them the first time. */
export function loadLocalKeys(file: string): LocalKeys {
  const known = readKeys(file);
  const keys = {
    apiKey: known["apiKey"] ?? newKey("demo"),
    providerKey: known["providerKey"] ?? newKey("provider"),
    adminToken: known["adminToken"] ?? newKey("admin"),
  };
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600 });
  return keys;
}

function readKeys(file: string): Record<string, string> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
    return Object.fromEntries(
      entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    );
  } catch {
    return {};
  }
}

function newKey(prefix: string): string {
  return `${prefix}-${randomBytes(18).toString("base64url")}`;
}
