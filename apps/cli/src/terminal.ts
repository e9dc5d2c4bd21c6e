import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";
import CliTable from "cli-table3";
import pico from "picocolors";

/** The three streams of a process; `isTTY` as Node sets it. */
export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean };
}

/** Results go to standard output, everything else to standard error. */
export class Terminal {
  readonly streams: Streams;
  readonly color: ReturnType<typeof pico.createColors>;

  constructor(streams: Streams, hasColor: boolean) {
    this.streams = streams;
    this.color = pico.createColors(hasColor && streams.stdout.isTTY === true);
  }

  /** Whether somebody can be asked. */
  get canAsk(): boolean {
    return this.streams.stdin.isTTY === true && this.streams.stderr.isTTY === true;
  }

  /** Whether a moving bar can be shown. */
  get canMove(): boolean {
    return this.streams.stderr.isTTY === true;
  }

  print(line: string): void {
    this.streams.stdout.write(`${line}\n`);
  }

  note(line: string): void {
    this.streams.stderr.write(`${line}\n`);
  }

  /** Columns without lines between them, so that a table can be cut and searched. */
  table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
    const table = new CliTable({
      chars: NO_LINES,
      style: { head: [], border: [], "padding-left": 0, "padding-right": 2 },
      head: head.map((title) => this.color.bold(title)),
    });
    for (const row of rows) {
      table.push(row.map((cell) => printable(String(cell))));
    }
    for (const line of table.toString().split("\n")) {
      this.print(line.trimEnd());
    }
  }

  /** Names and values, a line each; a value that is null or undefined is left out. */
  facts(facts: Readonly<Record<string, string | number | null | undefined>>): void {
    const given = Object.entries(facts).filter(([, value]) => value !== null && value !== undefined);
    const width = Math.max(...given.map(([name]) => name.length));
    for (const [name, value] of given) {
      this.print(`${this.color.bold(name.padEnd(width))}  ${printable(String(value))}`);
    }
  }

  /** Asks for a yes; anything else, and the end of the input, is a no. */
  async confirm(question: string, signal: AbortSignal): Promise<"yes" | "no" | "interrupted"> {
    const { stdin: input, stderr: output } = this.streams;
    const prompt = createInterface({ input, output, terminal: true });
    const [interrupted, ended] = [new AbortController(), new AbortController()];
    // In raw mode Ctrl-C is a key: nobody else hears of it.
    prompt.on("SIGINT", () => interrupted.abort()).on("close", () => ended.abort());
    try {
      const answer = await prompt.question(`${question} [y/N] `, {
        signal: AbortSignal.any([signal, interrupted.signal, ended.signal]),
      });
      return /^y(es)?$/i.test(answer.trim()) ? "yes" : "no";
    } catch {
      this.note("");
      return ended.signal.aborted && !interrupted.signal.aborted ? "no" : "interrupted";
    } finally {
      prompt.close();
    }
  }
}

const NO_LINES = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
  middle: "",
} as const;

/** Text of others, as a provider's error, must not steer the terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, "\u{fffd}");
}
