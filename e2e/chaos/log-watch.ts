/** Reads every log line of every app, and looks for bugs, users' texts, and injections that were not recorded. */
import { createWriteStream, mkdirSync, type WriteStream } from "node:fs";
import { join } from "node:path";

/** Every text, prompt and address of the traffic contains it. No log line may contain it, nor Redis in the end. */
export const CANARY = "canary-of-a-user";

/** A line with one of these events is a bug, also under faults. */
const BUG_EVENTS =
  /"event":"(uncaught_exception|unhandled_rejection|request_failed|background_work_failed|payload_gone|job_unreadable|turn_not_prepared|turn_work_failed)"/;
const UNTRACKED = /"event":"request".*"untracked":true,"ad_response_id":"([0-9a-f-]{36})"/;
const RELOADED = /"event":"publishers_reloaded","digest":"([0-9a-f]{12})"/;
const REDIS_AWAY = /"time":"([^"]+)".*"event":"redis_away"/;
const EXAMPLES_MAX = 20;

export class LogWatch {
  lines = 0;
  readonly bugs: string[] = [];
  readonly leaks: string[] = [];
  /** Injections that were answered and may not be recorded. */
  readonly untracked = new Set<string>();

  /** The digest of the publishers' file that each app took last. */
  readonly reloaded = new Map<string, string>();

  /** When an app said that it had lost Redis. */
  readonly redisAway: { readonly app: string; readonly atMs: number }[] = [];

  readonly #files = new Map<string, WriteStream>();
  readonly #dir: string | undefined;

  /** Keeps all lines in `dir`, if given. */
  constructor(dir: string | undefined) {
    this.#dir = dir;
  }

  read(app: string, line: string): void {
    this.lines += 1;
    this.#fileOf(app)?.write(`${line}\n`);
    if (BUG_EVENTS.test(line) || !line.startsWith("{")) {
      keepSome(this.bugs, `${app}: ${line}`);
    }
    if (line.includes(CANARY)) {
      keepSome(this.leaks, `${app}: ${line}`);
    }
    const [, digest] = RELOADED.exec(line) ?? [];
    if (digest !== undefined) {
      this.reloaded.set(app, digest);
    }
    const [, awayAt] = REDIS_AWAY.exec(line) ?? [];
    if (awayAt !== undefined) {
      this.redisAway.push({ app, atMs: Date.parse(awayAt) });
    }
    const [, id] = UNTRACKED.exec(line) ?? [];
    if (id !== undefined) {
      this.untracked.add(id);
    }
  }

  #fileOf(app: string): WriteStream | undefined {
    if (this.#dir !== undefined && !this.#files.has(app)) {
      mkdirSync(this.#dir, { recursive: true });
      this.#files.set(app, createWriteStream(join(this.#dir, `${app}.jsonl`)));
    }
    return this.#files.get(app);
  }
}

function keepSome(list: string[], line: string): void {
  if (list.length < EXAMPLES_MAX) {
    list.push(line);
  }
}
