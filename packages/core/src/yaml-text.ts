/** Texts of YAML files that settings name. No fault shows a part of the text: it may contain a key. */
import { type FieldFault, faultsOf } from "@adrelay/contract";
import { LineCounter, parseDocument } from "yaml";
import type { z } from "zod";

/** What a text says, or everything that is wrong with it. The path of a fault is a place in the file. */
export type YamlResult<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

export function parseYamlText<T>(text: string, schema: z.ZodType<T>): YamlResult<T> {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) {
    const faults = document.errors.map(({ code, pos: [at] }) => {
      return { path: "", message: `is not valid YAML: ${code} in line ${lines.linePos(at).line}` };
    });
    return { kind: "faulty", faults };
  }
  const value = documentValue(document);
  if (value === TOO_LARGE) {
    return { kind: "faulty", faults: [{ path: "", message: "is too large with its aliases" }] };
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) {
    return { kind: "ok", value: parsed.data };
  }
  const faults = faultsOf(parsed.error).map(({ path, message }) => {
    return { path: countedFromOne(path), message: inPlainWords(message) };
  });
  return { kind: "faulty", faults };
}

const TOO_LARGE = Symbol("too large");

function documentValue(document: ReturnType<typeof parseDocument>): unknown {
  try {
    return document.toJS();
  } catch {
    return TOO_LARGE;
  }
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
