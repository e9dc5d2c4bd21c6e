import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { redisErrorKind } from "@adrelay/core";
import type { Redis } from "ioredis";

/** A script with its includes, and the SHA-1 by which Redis knows it. */
export interface Script {
  readonly source: string;
  readonly sha: string;
}

export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** Runs a script of this package, such as `intake/accept`, on one connection. Resolves with Redis' reply. */
export type RunScript = (name: string, call: ScriptCall) => Promise<unknown>;

/** Reads the Lua scripts of this package, each one once. */
export class ScriptLibrary {
  readonly #scripts = new Map<string, Script>();

  /** The script `src/<name>.lua`. Throws if there is none. */
  load(name: string): Script {
    const known = this.#scripts.get(name) ?? compose(name, {});
    this.#scripts.set(name, known);
    return known;
  }

  /** A script with includes that are no files of this package: their Lua text by the name of the include. */
  compose(name: string, given: Readonly<Record<string, string>>): Script {
    return compose(name, given);
  }
}

function compose(name: string, given: Readonly<Record<string, string>>): Script {
  const read = (path: string): string =>
    readFileSync(new URL(`../${path}.lua`, import.meta.url), "utf8").replace(
      /^-- @include ([\w/-]+)$/gm,
      (_line, include: string) => given[include] ?? read(include),
    );
  const source = read(name);
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}

/**
 * Runs scripts on one connection.
 *
 * The source of a script is sent once for each connection that is opened, because Redis may have been restarted and know
 * no scripts. If only the hash was sent, Redis would refuse it, and the call would be repeated behind calls that were
 * made later. A call that waits for a connection sends the source, too.
 */
export class ScriptRunner {
  readonly #redis: Redis;
  readonly #library: ScriptLibrary;
  /** Hashes of the scripts whose source was sent since the connection was opened. */
  readonly #sent = new Set<string>();

  constructor(redis: Redis, library: ScriptLibrary) {
    this.#redis = redis;
    this.#library = library;
    redis.on("close", () => this.#sent.clear());
  }

  /** Runs a script of this package by its name. */
  readonly run: RunScript = (name, call) => this.runScript(this.#library.load(name), call);

  /** Runs a script. Rejects with Redis' error, or if the connection ends; the script may have run in the latter case. */
  async runScript({ sha, source }: Script, { keys, args }: ScriptCall): Promise<unknown> {
    const sendSource = () => this.#redis.eval(source, keys.length, ...keys, ...args);
    if (this.#redis.status !== "ready") {
      return sendSource();
    }
    if (!this.#sent.has(sha)) {
      this.#sent.add(sha);
      return sendSource();
    }
    try {
      return await this.#redis.evalsha(sha, keys.length, ...keys, ...args);
    } catch (error) {
      // Redis has forgotten its scripts, or it refused the call that carried the source.
      if (redisErrorKind(error) === "no_script") {
        return sendSource();
      }
      throw error;
    }
  }
}
