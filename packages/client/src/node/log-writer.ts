/** Appends lines to a log, those of one moment together, and goes on in a new log when one is full, broken or taken over. */
import { type FileHandle, open, stat } from "node:fs/promises";
import { dirname } from "node:path";

export interface LogWriterOptions {
  /** The path of a new log. */
  readonly newPath: () => Promise<string>;
  /** Whether a line counts as stored only once the disk has it. */
  readonly sync: boolean;
  readonly logBytesMax: number;
}

interface Line {
  readonly text: string;
  /** Whether losing it to a loss of power is harmless. */
  readonly isLight: boolean;
  readonly onWritten: (path: string) => void;
  readonly onFailed: (error: unknown) => void;
}

/** Called with the path of the log that has a line, before anything else can happen to that log. */
type OnPath = (path: string) => void;

interface OpenLog {
  readonly path: string;
  readonly handle: FileHandle;
  readonly inode: bigint;
  bytes: number;
}

/** Below this length a log that holds nothing is left as it is. */
const SHORTEN_BYTES_MIN = 64 * 1024;

class LogTakenError extends Error {
  override readonly name = "LogTakenError";
  override readonly message =
    "logs are taken over as soon as they are made: is the clock of another host wrong?";
}

export class LogWriter {
  readonly #options: LogWriterOptions;
  #log: OpenLog | undefined;
  #queue: Line[] = [];
  #work: Promise<void> | undefined;
  #isEmpty: (() => boolean) | undefined;

  constructor(options: LogWriterOptions) {
    this.#options = options;
  }

  /** The path of the log that is written; undefined before the first line. */
  get path(): string | undefined {
    return this.#log?.path;
  }

  /** Resolves once the line is stored. */
  store(text: string, isLight: boolean, onPath: OnPath): Promise<void> {
    return new Promise((resolve, onFailed) => {
      const onWritten = (path: string) => {
        onPath(path);
        resolve();
      };
      this.#queue.push({ text, isLight, onWritten, onFailed });
      this.#begin();
    });
  }

  /** Empties the log if it is long, nothing waits to be written, and `isEmpty` says so when its turn has come. */
  async shorten(isEmpty: () => boolean): Promise<void> {
    if ((this.#log?.bytes ?? 0) > SHORTEN_BYTES_MIN) {
      this.#isEmpty = isEmpty;
      while (this.#isEmpty !== undefined) {
        this.#begin();
        await this.#work;
      }
    }
  }

  async close(): Promise<void> {
    while (this.#work !== undefined) {
      await this.#work;
    }
    await this.#leaveLog();
  }

  #begin(): void {
    this.#work ??= this.#run().finally(() => {
      this.#work = undefined;
      if (this.#hasWork) {
        this.#begin();
      }
    });
  }

  get #hasWork(): boolean {
    return this.#queue.length > 0 || this.#isEmpty !== undefined;
  }

  async #run(): Promise<void> {
    // Gives the lines of this moment the time to come together.
    await Promise.resolve();
    while (this.#hasWork) {
      await (this.#queue.length > 0 ? this.#writeQueue() : this.#shortenNow());
    }
  }

  async #writeQueue(): Promise<void> {
    const lines = this.#queue;
    this.#queue = [];
    try {
      const path = await this.#write(lines);
      for (const { onWritten } of lines) {
        onWritten(path);
      }
    } catch (error) {
      await this.#leaveLog();
      for (const { onFailed } of lines) {
        onFailed(error);
      }
    }
  }

  async #write(lines: readonly Line[]): Promise<string> {
    // It begins with a line break, because the write before may have been cut short.
    const bytes = Buffer.from(`\n${lines.map(({ text }) => text).join("\n")}\n`);
    for (let tries = 0; tries < 3; tries += 1) {
      const log = await this.#logWithRoom();
      await log.handle.appendFile(bytes);
      log.bytes += bytes.byteLength;
      if (this.#options.sync && lines.some(({ isLight }) => !isLight)) {
        await log.handle.datasync();
      }
      if (await isInPlace(log)) {
        return log.path;
      }
      await this.#leaveLog();
    }
    throw new LogTakenError();
  }

  async #logWithRoom(): Promise<OpenLog> {
    if (this.#log !== undefined && this.#log.bytes > this.#options.logBytesMax) {
      await this.#leaveLog();
    }
    this.#log ??= await this.#openLog();
    return this.#log;
  }

  async #openLog(): Promise<OpenLog> {
    const path = await this.#options.newPath();
    const handle = await open(path, "ax", 0o600);
    const { ino: inode } = await handle.stat({ bigint: true });
    if (this.#options.sync) {
      await syncDirectory(dirname(path));
    }
    return { path, handle, inode, bytes: 0 };
  }

  async #leaveLog(): Promise<void> {
    const log = this.#log;
    this.#log = undefined;
    await log?.handle.close().catch(() => {});
  }

  async #shortenNow(): Promise<void> {
    const isEmpty = this.#isEmpty;
    this.#isEmpty = undefined;
    if (this.#log !== undefined && isEmpty?.() === true) {
      this.#log.bytes = 0;
      await this.#log.handle.truncate(0).catch(() => this.#leaveLog());
    }
  }
}

/** Whether the path still leads to the log, so that whoever takes it over from now on reads what was written. */
async function isInPlace({ path, inode }: OpenLog): Promise<boolean> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found?.ino === inode;
}

/** Without it, a loss of power could lose the name of a new log. Not every system allows it. */
async function syncDirectory(path: string): Promise<void> {
  try {
    const directory = await open(path, "r");
    await directory.sync().finally(() => directory.close());
  } catch {
    // The log itself is synced all the same.
  }
}
