import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";

const NAMES = [
  "record-injection",
  "begin",
  "settle",
  "leave-dead",
  "lose-payload",
  "take-payload-work",
  "sweep",
  "index-dead",
  "snapshot",
  "list-entries",
  "start-replay",
  "cancel-replay",
  "replay-batch",
  "latest-replays",
  "overdue-attempts",
  "queued-batch",
  "pulse",
  "gate-tick",
  "gate-claim",
  "gate-report",
  "gate-park",
] as const;
export type ScriptName = (typeof NAMES)[number];

/** Runs a script of `scripts/` by name, as `runScript` does. */
export type RunScript = (
  name: ScriptName,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>;

/** A script with its includes, and the name that Redis gives it. */
export interface Script {
  readonly source: string;
  readonly sha: string;
}

/** Reads the scripts from disk, once, and gives a way to run them on a connection. */
export function createScriptRunner(redis: Redis): RunScript {
  const scripts = new Map(NAMES.map((name) => [name, loadScript(name)]));
  return (name, keys, args) => runScript(redis, scripts.get(name) ?? loadScript(name), { keys, args });
}

export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/**
 * Runs a script. Each connection sends its source once, since Redis may have been started anew and know none: sent by its
 * hash, the call would have to be sent again, behind those that came after it. Those that wait for a connection send it,
 * too. Where Redis forgets its scripts on the way, or refused the source, it gets them again.
 */
export async function runScript(
  redis: Redis,
  { sha, source }: Script,
  { keys, args }: ScriptCall,
): Promise<unknown> {
  const load = () => redis.eval(source, keys.length, ...keys, ...args);
  const sent = sentOn(redis);
  if (redis.status !== "ready") {
    return load();
  }
  if (!sent.has(sha)) {
    sent.add(sha);
    return load();
  }
  try {
    return await redis.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (isMissingScript(error)) {
      return load();
    }
    throw error;
  }
}

const sentOnConnections = new WeakMap<Redis, Set<string>>();

/** The scripts whose source was sent since the connection was last opened. */
function sentOn(redis: Redis): Set<string> {
  const known = sentOnConnections.get(redis);
  if (known !== undefined) {
    return known;
  }
  const sent = new Set<string>();
  sentOnConnections.set(redis, sent);
  redis.on("close", () => sent.clear());
  return sent;
}

/** Reads a script of `scripts/` and what it includes: from `scripts/includes/`, unless it is given here by its name. */
export function loadScript(name: string, given: Readonly<Record<string, string>> = {}): Script {
  const read = (path: string) => readFileSync(new URL(`./scripts/${path}.lua`, import.meta.url), "utf8");
  const expand = (text: string): string =>
    text.replace(/^-- @include ([\w-]+)$/gm, (_line, include: string) => {
      return given[include] ?? expand(read(`includes/${include}`));
    });
  const source = expand(read(name));
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}

/** Redis names the kind of an error in its first word; NOSCRIPT means the script was never loaded there. */
function isMissingScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}
