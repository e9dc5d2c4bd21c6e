import type { DestinationStream } from "pino";

/** What stands between a logger and where its lines go. */
export interface JoinedLines extends DestinationStream {
  /** Told by pino of each line before it is written. */
  lastLevel: number;
  flush(done: () => void): void;
}

/** Where lines go in the end; takes a text at once. */
export interface LineTarget {
  write(text: string): unknown;
  /** Waits until all of it has been taken. */
  flush?(done: () => void): void;
}

/** pino's own number for `warn`. */
const WARN = 40;
const JOINED_CHARS_MAX = 64 * 1024;

/**
 * Joins the lines of one turn of the event loop in one write: under load a turn ends many requests, and a system call
 * for each line costs more than the line. A warning, an error and the end of the process write at once what is there, so
 * that only a process that is killed within a turn leaves its lines behind.
 */
export function joinLines(target: LineTarget): JoinedLines {
  let joined = "";
  const writeAll = () => {
    const text = joined;
    joined = "";
    if (text !== "") {
      target.write(text);
    }
  };
  let isHeard = false;
  const hearExit = () => {
    isHeard = true;
    process.on("exit", writeAll);
  };
  const lines = {
    // How pino knows that it is to tell the level.
    [Symbol.for("pino.metadata")]: true,
    lastLevel: 0,
    write: (line: string) => {
      if (!isHeard) {
        hearExit();
      }
      if (joined === "") {
        setImmediate(writeAll);
      }
      joined += line;
      if (lines.lastLevel >= WARN || joined.length > JOINED_CHARS_MAX) {
        writeAll();
      }
    },
    flush: (done: () => void) => {
      writeAll();
      if (target.flush === undefined) {
        done();
      } else {
        target.flush(done);
      }
    },
  };
  return lines;
}
