/** The publishers' files of the apps, and the keys by which the publishers call. A fault rotates the keys under traffic. */
import { createHash } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import { ACCOUNTS, type Account } from "./fault.ts";

interface AppFile {
  readonly path: string;
  /** The port of this app's proxy to the provider. */
  readonly providerPort: number;
}

export class PublishersFiles {
  readonly #files: AppFile[] = [];
  #rotations = 0;

  /** Writes the file of another app, with the present keys. */
  add(file: AppFile): void {
    this.#files.push(file);
    replace(file.path, textOf(file, [this.#rotations]));
  }

  /** The key by which a publisher calls now. */
  keyOf(account: Account): string {
    return keyOf(account, this.#rotations);
  }

  /** Makes the next keys valid beside the present ones. Returns the beginning of each file's digest. */
  allowNext(): readonly string[] {
    return this.#write([this.#rotations, this.#rotations + 1]);
  }

  /** From now on the publishers call by the next keys. */
  useNext(): void {
    this.#rotations += 1;
  }

  /** Ends all keys but the present ones. Returns the beginning of each file's digest. */
  endOld(): readonly string[] {
    return this.#write([this.#rotations]);
  }

  /** Leaves files that end in the middle, as if a writer had been killed. */
  breakFiles(paths: ReadonlySet<string>): void {
    for (const file of this.#files.filter(({ path }) => paths.has(path))) {
      writeFileSync(file.path, textOf(file, [this.#rotations]).slice(0, -20));
    }
  }

  #write(rotations: readonly number[]): readonly string[] {
    return this.#files.map((file) => {
      const text = textOf(file, rotations);
      replace(file.path, text);
      return digestOf(text).slice(0, 12);
    });
  }
}

/** Two publishers, each with its own account at the provider. */
function textOf({ providerPort }: AppFile, rotations: readonly number[]): string {
  const lines = ACCOUNTS.map((account) => {
    const keys = rotations.map((at) => `{ id: k${at}, sha256: "${digestOf(keyOf(account, at))}" }`);
    const provider = `{ url: "${urlOf(account, providerPort)}", api_key_env: ${account.toUpperCase()}_KEY }`;
    return `  - { id: ${account}, name: ${account}, keys: [${keys.join(", ")}], provider: ${provider} }\n`;
  });
  return `publishers:\n${lines.join("")}`;
}

/** Where the provider of a publisher is. */
export function urlOf(account: Account, providerPort: number): string {
  return `http://127.0.0.1:${providerPort}/${account}`;
}

function keyOf(account: Account, rotation: number): string {
  return `key-${rotation}-of-${account}`;
}

/** A process that starts meanwhile finds the old file or the new one. */
function replace(path: string, text: string): void {
  writeFileSync(`${path}.next`, text);
  renameSync(`${path}.next`, path);
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
