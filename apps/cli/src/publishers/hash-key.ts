/** The command `adrelay publishers hash-key`. It needs neither a gateway nor a token. */
import { hash, randomBytes } from "node:crypto";
import { text as readAll } from "node:stream/consumers";
import { headerKeySchema } from "@adrelay/contract";
import { keyOfDigest } from "@adrelay/core";
import { defineLocalCommand } from "../command.ts";
import { EXIT, UsageError } from "../exit-codes.ts";
import type { LocalSession } from "../session.ts";

/** A shorter key can be guessed. */
const KEY_CHARS_MIN = 16;
const NEW_KEY_BYTES = 32;

export const addPublishersHashKey = defineLocalCommand({
  words: "hash-key",
  describe:
    "Prints the entry of a caller's key for the publishers' file: of a new key, or of one from standard input",
  options: (yargs) =>
    yargs.option("new", {
      type: "boolean",
      default: false,
      describe: "Make a strong key and print it, once",
    }),
  run: async ({ new: isNew }, session) => {
    const key = isNew ? randomBytes(NEW_KEY_BYTES).toString("base64url") : await readKey(session);
    if (key === undefined) {
      return EXIT.interrupted;
    }
    const { id, digest } = keyOfDigest(hash("sha256", key, "hex"));
    const created = new Date(session.now()).toISOString().slice(0, "2026-11-30".length);
    showEntry(session, { key: isNew ? key : undefined, id, sha256: digest, created });
    return EXIT.done;
  },
});

/** Reads the key, without the blanks and line breaks around it. undefined after an interruption. */
async function readKey({ terminal, signal }: LocalSession): Promise<string | undefined> {
  const given = terminal.canAsk ? await terminal.ask("Key:", signal) : await readAll(terminal.streams.stdin);
  const key = given?.trim();
  if (key === undefined) {
    return undefined;
  }
  const [issue] = headerKeySchema.safeParse(key).error?.issues ?? [];
  if (issue !== undefined) {
    throw new UsageError(`the key on standard input ${issue.message}`);
  }
  if (key.length < KEY_CHARS_MIN) {
    throw new UsageError(
      `the key on standard input must have at least ${KEY_CHARS_MIN} characters: --new makes a strong one`,
    );
  }
  return key;
}

interface KeyEntry {
  readonly key: string | undefined;
  readonly id: string;
  readonly sha256: string;
  readonly created: string;
}

function showEntry({ terminal, isJson }: LocalSession, { key, ...entry }: KeyEntry): void {
  if (isJson) {
    terminal.print(JSON.stringify({ key: key ?? null, ...entry }));
    return;
  }
  if (key !== undefined) {
    terminal.print(`# The key, for the caller. It is shown only now:\n# ${key}`);
  }
  terminal.print("keys:");
  terminal.print(`  - id: "${entry.id}"`);
  terminal.print(`    sha256: "${entry.sha256}"`);
  terminal.print(`    created: ${entry.created}`);
  terminal.print("    # expires: 2027-12-31");
}
