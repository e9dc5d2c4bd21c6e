import type { FieldFault } from "@adrelay/contract";
import { CORE_SCHEMA, load, YAMLException } from "js-yaml";
import { LineCounter, parseDocument } from "yaml";
import { parseCatalog } from "../load-catalog.ts";
import { type LintOptions, warningsOf } from "./catalog-warnings.ts";

/** One thing to look at, where it stands in the file; lines and columns count from 1. */
export interface Finding {
  readonly severity: "error" | "warning";
  /** Such as `3.targeting.age_min`: of the fourth ad; empty for the file as a whole. */
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** Judges the text of a catalogue file: its errors, or where it has none what is hardly meant. */
export function lintCatalog(text: string, options: LintOptions): Finding[] {
  const read = readYaml(text);
  if (read.kind === "faulty") {
    return [read.finding];
  }
  const parsed = parseCatalog(read.value);
  const [severity, faults] =
    parsed.kind === "ok"
      ? (["warning", warningsOf(parsed.ads, options)] as const)
      : (["error", parsed.faults.map(withoutSetting)] as const);
  const placeOf = placesIn(text);
  return faults
    .map(({ path, message }) => ({ severity, path, ...placeOf(path), message }))
    .sort((one, other) => one.line - other.line || one.column - other.column);
}

type YamlRead =
  | { readonly kind: "ok"; readonly value: unknown }
  | { readonly kind: "faulty"; readonly finding: Finding };

/** As the server reads it; what tells places is another parser. */
function readYaml(text: string): YamlRead {
  try {
    return { kind: "ok", value: load(text, { schema: CORE_SCHEMA }) };
  } catch (error) {
    const mark = error instanceof YAMLException ? error.mark : undefined;
    const message = error instanceof YAMLException ? error.reason : "is no YAML";
    const [line, column] = [(mark?.line ?? 0) + 1, (mark?.column ?? 0) + 1];
    return { kind: "faulty", finding: { severity: "error", path: "", line, column, message } };
  }
}

function withoutSetting({ path, message }: FieldFault): FieldFault {
  return { path: path.replace(/^CATALOG_FILE ?/, ""), message };
}

/** Tells places by their paths: of the member itself, or of the nearest thing around it that is there. */
function placesIn(text: string): (path: string) => { line: number; column: number } {
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
