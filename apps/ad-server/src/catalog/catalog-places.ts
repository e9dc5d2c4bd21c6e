/** Finds the lines of a catalogue file that faults are about. */
import type { FieldFault } from "@adrelay/contract";
import { LineCounter, parseDocument } from "yaml";

/** A fault of a catalogue. */
export interface CatalogFault extends FieldFault {
  /** From 1; absent if the fault is about the file as a whole, or if the file is too long to look for lines. */
  readonly line?: number;
  /** Id of the ad, if it has one. */
  readonly ad?: string;
}

/** Finds the place of a path: of the member itself or, if it is absent, of the nearest one that contains it. */
export function placesIn(text: string): (path: string) => { line: number; column: number } {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  return (path) => {
    const keys = path === "" ? [] : path.split(".").map((key) => (/^\d+$/.test(key) ? Number(key) : key));
    for (let depth = keys.length; depth > 0; depth -= 1) {
      const offset = offsetOf(document.getIn(keys.slice(0, depth), true));
      if (offset !== undefined) {
        const { line, col } = lines.linePos(offset);
        return { line, column: col };
      }
    }
    return { line: 1, column: 1 };
  };
}

function offsetOf(node: unknown): number | undefined {
  const range: unknown = Object(node)["range"];
  const start: unknown = Array.isArray(range) ? range[0] : undefined;
  return typeof start === "number" ? start : undefined;
}

/** Looking for the lines of a longer text would take many seconds. */
const PLACED_CHARS_MAX = 8_000_000;

/** Adds the line and the ad's id to faults with paths such as `3.targeting.age_min`, and sorts them by line. */
export function placeFaults(faults: readonly FieldFault[], text: string, ads: unknown): CatalogFault[] {
  const placeOf = text.length <= PLACED_CHARS_MAX ? placesIn(text) : undefined;
  return faults
    .map(({ path, message }) => {
      const id: unknown = Object(Object(ads)[path.split(".")[0] ?? ""])["id"];
      return {
        path,
        ...(placeOf === undefined ? {} : { line: placeOf(path).line }),
        ...(typeof id === "string" ? { ad: id } : {}),
        message,
      };
    })
    .sort((one, other) => (one.line ?? 0) - (other.line ?? 0));
}

/** The fault in one sentence, for people who see no fields: `line 4, ad velmora-drift: must not be empty`. */
export function describeFault({ line, ad, message }: CatalogFault): string {
  const place = [...(line === undefined ? [] : [`line ${line}`]), ...(ad === undefined ? [] : [`ad ${ad}`])];
  return place.length === 0 ? message : `${place.join(", ")}: ${message}`;
}
