/**
 * Finds the members of a JSON document by their bytes, so that one string can be replaced and nothing else changes.
 *
 * No object is made of the document, so its numbers, escapes, white space and duplicate members stay as they are.
 */
import { isUtf8 } from "node:buffer";
import type { Place } from "./dialect.ts";
import { BYTE, FIELD, JsonScanner, NODE_WIDTH, standsAt } from "./json-scanner.ts";

/** A value of a document, by its number. The value of the document itself is 0. */
export type NodeId = number;
export type JsonKind = "object" | "array" | "string" | "other" | "null";

export type ScannedJson =
  | { readonly kind: "scanned"; readonly json: JsonPlaces }
  | { readonly kind: "not_json" }
  | { readonly kind: "too_large" };

export function scanJson(body: Buffer): ScannedJson {
  if (!isUtf8(body)) return { kind: "not_json" };
  const scanner = new JsonScanner(body);
  if (scanner.readDocument()) return { kind: "scanned", json: new JsonPlaces(body, scanner.nodes) };
  return { kind: scanner.isTooLarge ? "too_large" : "not_json" };
}

/** Looks values up in a document that was scanned. */
export class JsonPlaces {
  readonly #body: Buffer;
  readonly #nodes: readonly number[];

  constructor(body: Buffer, nodes: readonly number[]) {
    this.#body = body;
    this.#nodes = nodes;
  }

  kindOf(node: NodeId): JsonKind {
    switch (this.#body[this.#at(node, FIELD.start)]) {
      case BYTE.openObject:
        return "object";
      case BYTE.openArray:
        return "array";
      case BYTE.quote:
        return "string";
      case BYTE.n:
        return "null";
      default:
        return "other";
    }
  }

  placeOf(node: NodeId): Place {
    return { start: this.#at(node, FIELD.start), end: this.#at(node, FIELD.end) };
  }

  /** Members or elements, in their order. None of a value that has none, or that lies too deep. */
  children(node: NodeId): NodeId[] {
    const children: NodeId[] = [];
    const end = this.#at(node, FIELD.next);
    for (let child = node + 1; child < end; child = this.#at(child, FIELD.next)) children.push(child);
    return children;
  }

  /** A member of an object; the last one if its key comes twice. `null` counts as absent, as the model's servers take it. */
  member(node: NodeId, key: string): NodeId | undefined {
    if (this.kindOf(node) !== "object") return undefined;
    let found: NodeId | undefined;
    const end = this.#at(node, FIELD.next);
    for (let child = node + 1; child < end; child = this.#at(child, FIELD.next)) {
      if (this.#hasKey(child, key)) found = child;
    }
    return found === undefined || this.kindOf(found) === "null" ? undefined : found;
  }

  /** The value of a member that is a string. */
  stringMember(node: NodeId, key: string): string | undefined {
    const member = this.member(node, key);
    return member === undefined ? undefined : this.string(member);
  }

  /** Undefined for a value that isn't a string, or that has a wrong escape. */
  string(node: NodeId): string | undefined {
    if (this.kindOf(node) !== "string") return undefined;
    const value = this.#parse(node);
    return typeof value === "string" ? value : undefined;
  }

  /** A number or a boolean. Undefined for other values. */
  scalarMember(node: NodeId, key: string): unknown {
    const member = this.member(node, key);
    return member === undefined || this.kindOf(member) !== "other" ? undefined : this.#parse(member);
  }

  /** Whether a member with one of these keys, and not `null`, lies anywhere below a value. */
  hasBelow(node: NodeId, keys: readonly string[]): boolean {
    const end = this.#at(node, FIELD.next);
    for (let below = node + 1; below < end; below++) {
      if (this.kindOf(below) !== "null" && keys.some((key) => this.#hasKey(below, key))) return true;
    }
    return false;
  }

  #hasKey(node: NodeId, key: string): boolean {
    const start = this.#at(node, FIELD.keyStart);
    const end = this.#at(node, FIELD.keyEnd);
    if (start < 0) return false;
    const length = end - start - 2;
    if (length === key.length) return standsAt(this.#body, start + 1, key);
    // A key may be written with escapes, which make it longer: at most six bytes a character.
    if (length < key.length || length > key.length * 6) return false;
    const written = this.#body.toString("latin1", start, end);
    return written.includes("\\") && parseJson(written) === key;
  }

  #parse(node: NodeId): unknown {
    return parseJson(this.#body.toString("utf8", this.#at(node, FIELD.start), this.#at(node, FIELD.end)));
  }

  #at(node: NodeId, field: number): number {
    return this.#nodes[node * NODE_WIDTH + field] ?? -1;
  }
}

/** Undefined if the text isn't JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
