import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import CliTable from "cli-table3";
import pico from "picocolors";

/** The three streams of a process; `isTTY` as Node sets it. */
export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
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

  /** Width of what results are shown on; undefined if that is no terminal. */
  get columns(): number | undefined {
    return this.streams.stdout.isTTY === true ? this.streams.stdout.columns : undefined;
  }

  print(line: string): void {
    this.streams.stdout.write(`${line}\n`);
  }

  note(line: string): void {
    this.streams.stderr.write(`${line}\n`);
  }

  /**
   * Columns without lines between them, so that a table can be cut and searched. On a terminal that is too
   * narrow for it each row becomes a paragraph. Nothing at all without rows.
   */
  table(head: readonly string[], rows: readonly Row[]): void {
    const titles = head.map((title) => this.color.bold(title));
    const fitting = GAPS.map((gap) => layOut(titles, rows, gap)).find(
      ({ width }) => width <= (this.columns ?? Number.POSITIVE_INFINITY),
    );
    if (fitting !== undefined && rows.length > 0) {
      this.print(fitting.text);
    } else {
      this.#paragraphs(head, rows);
    }
  }

  #paragraphs(head: readonly string[], rows: readonly Row[]): void {
    for (const [at, row] of rows.entries()) {
      if (at > 0) {
        this.print("");
      }
      this.facts(Object.fromEntries(head.map((title, column) => [title.toLowerCase(), row[column]])));
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

type Row = readonly (string | number)[];

/** Blanks between columns: better many than few. */
const GAPS = [2, 1] as const;

function layOut(
  titles: readonly string[],
  rows: readonly Row[],
  gap: number,
): { readonly text: string; readonly width: number } {
  const style = { head: [], border: [], "padding-left": 0, "padding-right": gap };
  const table = new CliTable({ chars: NO_LINES, style, head: [...titles] });
  for (const row of rows) {
    table.push(row.map((cell) => printable(String(cell))));
  }
  const lines = table
    .toString()
    .split("\n")
    .map((line) => line.trimEnd());
  const width = Math.max(...lines.map((line) => stripVTControlCharacters(line).length));
  return { text: lines.join("\n"), width };
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
