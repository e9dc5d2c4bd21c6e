/** Output for people: the terminal, and how times and objects are written. */
import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import CliTable from "cli-table3";
import ms from "ms";
import pico from "picocolors";

/** The three streams of a process. Node sets `isTTY`. */
export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
}

/** Writes results to standard output, and everything else to standard error. */
export class Terminal {
  readonly streams: Streams;
  readonly color: ReturnType<typeof pico.createColors>;

  constructor(streams: Streams, hasColor: boolean) {
    this.streams = streams;
    this.color = pico.createColors(hasColor && streams.stdout.isTTY === true);
  }

  /** Whether the command can ask a question. */
  get canAsk(): boolean {
    return this.streams.stdin.isTTY === true && this.streams.stderr.isTTY === true;
  }

  /** Whether the command can show a progress bar. */
  get canShowBar(): boolean {
    return this.streams.stderr.isTTY === true;
  }

  /** Width of the terminal that shows the results; undefined if standard output is not a terminal. */
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
   * Prints a table without ruled lines, so that `cut` and `grep` can read it. If the terminal is too narrow, each row
   * is printed as a paragraph. Without rows nothing is printed.
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

  /** Prints one line for each name and value. Values that are null or undefined are left out. */
  facts(facts: Readonly<Record<string, string | number | null | undefined>>): void {
    const given = Object.entries(facts).filter(([, value]) => value !== null && value !== undefined);
    const width = Math.max(...given.map(([name]) => name.length));
    for (const [name, value] of given) {
      this.print(`${this.color.bold(name.padEnd(width))}  ${printable(String(value))}`);
    }
  }

  /** Asks a question. Only `y` and `yes` mean yes; any other input, and its end, mean no. */
  async confirm(question: string, signal: AbortSignal): Promise<"yes" | "no" | "interrupted"> {
    const answer = await this.ask(`${question} [y/N]`, signal);
    return answer === undefined ? "interrupted" : /^y(es)?$/i.test(answer.trim()) ? "yes" : "no";
  }

  /** Asks for a line of text: empty at the end of the input, undefined after an interruption. */
  async ask(question: string, signal: AbortSignal): Promise<string | undefined> {
    const { stdin: input, stderr: output } = this.streams;
    const prompt = createInterface({ input, output, terminal: true });
    const [interrupted, ended] = [new AbortController(), new AbortController()];
    // In raw mode Ctrl-C is a key: the process gets no signal.
    prompt.on("SIGINT", () => interrupted.abort()).on("close", () => ended.abort());
    try {
      return await prompt.question(`${question} `, {
        signal: AbortSignal.any([signal, interrupted.signal, ended.signal]),
      });
    } catch {
      this.note("");
      return ended.signal.aborted && !interrupted.signal.aborted ? "" : undefined;
    } finally {
      prompt.close();
    }
  }
}

type Row = readonly (string | number)[];

/** Blanks between columns: the wider gap is used if it fits. */
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

/** Replaces control characters: text from others, such as a provider's error, must not control the terminal. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, "\u{fffd}");
}

/** Writes a time to the second, and how long ago it was. */
export function describeMoment(time: string | null, nowMs: number): string {
  const atMs = time === null ? Number.NaN : Date.parse(time);
  if (Number.isNaN(atMs)) {
    return "-";
  }
  return `${new Date(atMs).toISOString().slice(0, 19)}Z (${describeAge(time, nowMs)})`;
}

/** Writes how long ago a time was, or how far it is in the future. */
export function describeAge(time: string | null, nowMs: number): string {
  const agoMs = time === null ? Number.NaN : nowMs - Date.parse(time);
  if (Number.isNaN(agoMs)) {
    return "-";
  }
  return agoMs >= 0 ? `${ms(agoMs)} ago` : `in ${ms(-agoMs)}`;
}

export function describeSeconds(seconds: number | null): string {
  const whole = Math.round(seconds ?? 0);
  return seconds === null ? "-" : whole === 0 ? "0s" : ms(whole * 1000);
}

/** Writes a size, with the units of Redis' maxmemory. */
export function describeBytes(bytes: number): string {
  const unit = BYTE_UNITS.find(({ size }) => bytes >= size);
  return unit === undefined ? `${bytes} B` : `${(bytes / unit.size).toFixed(1)} ${unit.name}`;
}

const BYTE_UNITS = [
  { name: "GB", size: 1024 ** 3 },
  { name: "MB", size: 1024 ** 2 },
  { name: "KB", size: 1024 },
] as const;

/** Writes an object's members as `name=value`. Members that are null or undefined are left out. */
export function describeMembers(value: unknown): string {
  return Object.entries(Object(value))
    .filter(([, member]) => member !== null && member !== undefined)
    .map(([name, member]) => `${name}=${describeMember(member)}`)
    .join(" ");
}

/** Text is quoted only if it could be mistaken for more than one member. */
function describeMember(member: unknown): string {
  return typeof member === "string" && /^[^\s="]+$/.test(member) ? member : JSON.stringify(member);
}
