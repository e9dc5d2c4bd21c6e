/**
 * An outbox in a directory. It outlives a kill of the process and, with `sync`, a loss of power.
 *
 * 1. Each process appends to logs of its own. An acknowledgment is stored once its line is on the disk.
 * 2. Lines that come while a write is under way go together in the next one, with one sync for all.
 * 3. A log whose owner is gone is taken over by renaming it: of several processes one succeeds. A process is gone if its id is
 *    free on this host, or if it hasn't touched its logs for the lease.
 * 4. An owner that only stood still finds its log renamed after its next write, and writes that again elsewhere. Then two
 *    processes may send the same acknowledgments, which the relay allows.
 * 5. An ad is stored as open before its answer begins, without a sync: a loss of power may lose it. Its text replaces it. If a
 *    crash comes between the two writes that this needs in two logs, an empty text may be sent first, and then it counts.
 * 6. A log is deleted when it holds nothing any more. So a full disk and old logs don't pile up.
 */
import { randomUUID } from "node:crypto";
import { appendFile, constants, mkdir, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { startTimer } from "../limits.ts";
import type { Outbox, StoredAcknowledgment } from "../outbox.ts";
import { isGone } from "./gone-owner.ts";
import {
  type LogOwner,
  lineOf,
  lineOfRemoval,
  logName,
  ownerOf,
  readLog,
  thisProcess,
} from "./log-format.ts";
import { LogWriter } from "./log-writer.ts";

export interface FileOutboxOptions {
  /** A directory on a local disk. It is created if needed, readable by this user alone. */
  readonly directory: string;
  /** Whether an acknowledgment is stored only once the disk has it. Without, a loss of power can lose some. Default: true. */
  readonly sync?: boolean;
  /** A process that is silent for so long counts as gone, if its host can't tell. Default: 30000. */
  readonly leaseMs?: number;
  /** A log that is longer is continued in a new one. Default: 4 MiB. */
  readonly logBytesMax?: number;
}

/** Keeps acknowledgments in a directory, which several processes can share. */
export function fileOutbox(options: FileOutboxOptions): Outbox {
  return new FileOutbox(options);
}

/** More logs than this are merged, so that one acknowledgment that waits for long doesn't keep a whole log. */
const LOGS_MAX = 8;

class HeldIds extends Set<string> {
  /** How many acknowledgments were written to the log, also those that it no longer holds. */
  lines = 0;
}

/** Goes to the log that has the acknowledgment, whichever is written now. A log that was taken over isn't made anew. */
async function appendRemoval(path: string, adResponseId: string): Promise<void> {
  try {
    await appendFile(path, `\n${lineOfRemoval(adResponseId)}\n`, {
      flag: constants.O_APPEND | constants.O_WRONLY,
    });
  } catch (error) {
    if (Object(error).code !== "ENOENT") {
      throw error;
    }
  }
}

class FileOutbox implements Outbox {
  readonly isDurable = true;
  readonly #directory: string;
  readonly #leaseMs: number;
  readonly #owner: LogOwner = thisProcess();
  readonly #writer: LogWriter;
  /** The ids that each of our logs holds, by the log's path. The oldest log is first. */
  readonly #logs = new Map<string, HeldIds>();
  readonly #logById = new Map<string, string>();
  /** Those under way: a log must not be left behind because the process ended in the middle of one. */
  readonly #removals = new Set<Promise<void>>();
  #stopTouching = () => {};

  constructor({
    directory,
    sync = true,
    leaseMs = 30_000,
    logBytesMax = 4 * 1024 * 1024,
  }: FileOutboxOptions) {
    this.#directory = directory;
    this.#leaseMs = leaseMs;
    this.#writer = new LogWriter({ newPath: () => this.#newPath(), sync, logBytesMax });
    this.#touchLater();
  }

  async add(acknowledgment: StoredAcknowledgment): Promise<void> {
    const { adResponseId, isOpen = false } = acknowledgment;
    const before = this.#logById.get(adResponseId);
    await this.#writer.store(lineOf(acknowledgment), isOpen, (path) => this.#hold(path, adResponseId));
    if (before !== undefined && before !== this.#logById.get(adResponseId)) {
      await this.#release(before, adResponseId);
    }
    if (this.#logs.size > LOGS_MAX) {
      await this.#mergeOldest();
    }
  }

  async remove(adResponseId: string): Promise<void> {
    const removal = this.#remove(adResponseId);
    this.#removals.add(removal);
    await removal.finally(() => this.#removals.delete(removal));
  }

  async #remove(adResponseId: string): Promise<void> {
    const path = this.#logById.get(adResponseId);
    this.#logById.delete(adResponseId);
    if (path !== undefined) {
      await this.#release(path, adResponseId);
    }
  }

  async #release(path: string, adResponseId: string): Promise<void> {
    const held = this.#logs.get(path);
    if (held === undefined) {
      return;
    }
    held.delete(adResponseId);
    if (held.size > 0 || path === this.#writer.path) {
      await appendRemoval(path, adResponseId);
    }
    await this.#dropIfEmpty(path);
  }

  async takeLeftOver(): Promise<readonly StoredAcknowledgment[]> {
    const names = await readdir(this.#directory).catch(() => []);
    const errors: unknown[] = [];
    for (const name of names) {
      const left = await this.#takeLog(name).catch((error: unknown) => void errors.push(error));
      if (left !== undefined && left.length > 0) {
        return left;
      }
    }
    // A log that can't be taken keeps none behind it from being taken.
    if (errors.length > 0) {
      throw errors[0];
    }
    return [];
  }

  async close(): Promise<void> {
    this.#stopTouching();
    await Promise.allSettled(this.#removals);
    await this.#writer.close();
    for (const [path, held] of this.#logs) {
      // A log without a sign of life may be taken over at once.
      await (held.size === 0 ? rm(path, { force: true }) : utimes(path, 0, 0).catch(() => {}));
    }
    this.#logs.clear();
    this.#logById.clear();
  }

  async #newPath(): Promise<string> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const path = join(this.#directory, logName(this.#owner, randomUUID()));
    this.#logs.set(path, new HeldIds());
    return path;
  }

  #hold(path: string, id: string): void {
    const held = this.#logs.get(path) ?? new HeldIds();
    held.lines += 1;
    this.#logs.set(path, held.add(id));
    this.#logById.set(id, path);
  }

  /** Deletes a log that isn't written any more and holds nothing; shortens the one that is written. */
  async #dropIfEmpty(path: string): Promise<void> {
    if (this.#logs.get(path)?.size !== 0) {
      return;
    }
    if (path === this.#writer.path) {
      await this.#writer.shorten(() => this.#logs.get(path)?.size === 0);
    } else {
      this.#logs.delete(path);
      await rm(path, { force: true });
    }
  }

  /** What a log of a process that is gone holds; nothing if its owner lives or another process was faster. */
  async #takeLog(name: string): Promise<StoredAcknowledgment[]> {
    const path = join(this.#directory, name);
    const owner = ownerOf(name);
    try {
      if (owner === undefined || this.#logs.has(path)) {
        return [];
      }
      const { mtimeMs } = await stat(path);
      if (!isGone(owner, this.#owner, { silentMs: Date.now() - mtimeMs, leaseMs: this.#leaseMs })) {
        return [];
      }
      const now = new Date();
      await utimes(path, now, now);
      const ours = join(this.#directory, logName(this.#owner, randomUUID()));
      await rename(path, ours);
      const left = readLog(await readFile(ours, "utf8"));
      for (const { adResponseId } of left) {
        this.#hold(ours, adResponseId);
      }
      if (left.length === 0) {
        await rm(ours, { force: true });
      }
      return left;
    } catch (error) {
      if (Object(error).code === "ENOENT") {
        return [];
      }
      throw error;
    }
  }

  /**
   * Writes what the oldest log still holds once more, and deletes that log. Half of its lines are gone at least: so each merge
   * leaves less than there was, and merging ends.
   */
  async #mergeOldest(): Promise<void> {
    const oldest = [...this.#logs].find(
      ([path, held]) => path !== this.#writer.path && 2 * held.size <= held.lines,
    );
    if (oldest === undefined) {
      return;
    }
    const [path, held] = oldest;
    this.#logs.delete(path);
    let text = "";
    try {
      text = await readFile(path, "utf8");
    } catch (error) {
      // One that is missing was taken over. Any other stays, to be merged later.
      if (Object(error).code !== "ENOENT") {
        for (const id of held) {
          // What was removed meanwhile found no log.
          if (this.#logById.get(id) !== path) {
            held.delete(id);
          }
        }
        this.#logs.set(path, held);
        await this.#dropIfEmpty(path);
        return;
      }
    }
    for (const acknowledgment of readLog(text)) {
      if (this.#logById.get(acknowledgment.adResponseId) === path) {
        await this.add(acknowledgment);
      }
    }
    await rm(path, { force: true });
  }

  /** The sign of life that keeps others from our logs. */
  #touchLater(): void {
    this.#stopTouching = startTimer(this.#leaseMs / 3, () => void this.#touch(), true);
  }

  async #touch(): Promise<void> {
    const now = new Date();
    // A log that was taken over is missing. The next write will notice.
    await Promise.all([...this.#logs.keys()].map((path) => utimes(path, now, now).catch(() => {})));
    this.#touchLater();
  }
}
