/** YAML files that settings name. Faults say where in the file, in plain words, and quote nothing: it may contain a key. */
import { readFileSync } from "node:fs";
import { type FieldFault, faultsOf } from "@adrelay/contract";
import { LineCounter, parseDocument } from "yaml";
import type { z } from "zod";

export type YamlFileResult<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** Reads a file and checks it. `setting` is the setting that names it. */
export function loadYamlFile<T>(setting: string, file: string, schema: z.ZodType<T>): YamlFileResult<T> {
  const document = readDocument(file);
  if (document.kind === "unreadable") {
    return { kind: "faulty", faults: [{ path: setting, message: document.why }] };
  }
  const parsed = schema.safeParse(document.value);
  if (parsed.success) {
    return { kind: "ok", value: parsed.data };
  }
  const faults = faultsOf(parsed.error).map(({ path, message }) => ({
    path: `${setting} ${countedFromOne(path)}`.trim(),
    message: inPlainWords(message),
  }));
  return { kind: "faulty", faults };
}

/** `publishers.0.key_sha256.1` is `publishers 1, key_sha256 2` for people. */
function countedFromOne(path: string): string {
  return path.replaceAll(/\.(\d+)/g, (_, index: string) => ` ${Number(index) + 1}`).replaceAll(".", ", ");
}

const KINDS: Readonly<Record<string, string>> = {
  array: "a list",
  string: "a text (in quotes, if it looks like a number)",
  object: "a mapping with members",
};

/** The parser's own words for what is missing, of another kind or unknown. All other messages are ours. */
function inPlainWords(message: string): string {
  const [, expected = "", received] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? [];
  if (received !== undefined) {
    return received === "undefined" ? "is missing" : `must be ${KINDS[expected] ?? expected}`;
  }
  return message.startsWith("Too small")
    ? "must not be empty"
    : message.replace(/^Unrecognized keys?:/, "has members that are not known:");
}

function readDocument(file: string): { kind: "read"; value: unknown } | { kind: "unreadable"; why: string } {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    return { kind: "unreadable", why: error instanceof Error ? error.message : "can't be read" };
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [fault] = document.errors;
  if (fault !== undefined) {
    // The parser's message may quote the file, and the file may contain a key.
    return {
      kind: "unreadable",
      why: `is not valid YAML: ${fault.code} in line ${lines.linePos(fault.pos[0]).line}`,
    };
  }
  const value: unknown = document.toJS();
  return { kind: "read", value };
}
