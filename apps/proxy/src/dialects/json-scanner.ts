/**
 * One pass over the bytes of a JSON document, which writes down where each value begins and ends.
 *
 * It accepts what `JSON.parse` accepts. Of what `JSON.parse` refuses it finds wrong structure, but not every wrong number or escape:
 * the model's server looks at those. Its depth and the number of values are bounded.
 */

/** Values below this depth are checked, but can't be looked up. */
const RECORDED_DEPTH = 10;
const DEPTH_MAX = 512;
const NODES_MAX = 200_000;
/** After so many bytes of a string, the rest is probably long, and searching for its end is faster than reading it. */
const SHORT_STRING_BYTES = 64;

/** Numbers kept for each value: start, end, the key's start and end (-1 without a key), and the number of the value after it. */
export const NODE_WIDTH = 5;
export const FIELD = { start: 0, end: 1, keyStart: 2, keyEnd: 3, next: 4 } as const;

export const BYTE = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  backslash: 0x5c,
  openObject: 0x7b,
  closeObject: 0x7d,
  openArray: 0x5b,
  closeArray: 0x5d,
  f: 0x66,
  n: 0x6e,
  t: 0x74,
} as const;

/** Whether these ASCII characters stand at a place of the body. */
export function standsAt(body: Buffer, at: number, characters: string): boolean {
  for (let i = 0; i < characters.length; i++) if (body[at + i] !== characters.charCodeAt(i)) return false;
  return true;
}

/** Each `read…` moves on behind what it reads, and answers false if the document is wrong there. */
export class JsonScanner {
  readonly nodes: number[] = [];
  isTooLarge = false;
  readonly #body: Buffer;
  #at = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  readDocument(): boolean {
    if (!this.#readValue(0, -1, -1)) return false;
    this.#skipSpace();
    return this.#at === this.#body.length;
  }

  #readValue(depth: number, keyStart: number, keyEnd: number): boolean {
    this.#skipSpace();
    const first = this.nodes.length;
    const isRecorded = depth < RECORDED_DEPTH;
    if (depth > DEPTH_MAX || first >= NODES_MAX * NODE_WIDTH) {
      this.isTooLarge = true;
      return false;
    }
    if (isRecorded) this.nodes.push(this.#at, 0, keyStart, keyEnd, 0);
    if (!this.#readAny(depth)) return false;
    if (isRecorded) {
      this.nodes[first + FIELD.end] = this.#at;
      this.nodes[first + FIELD.next] = this.nodes.length / NODE_WIDTH;
    }
    return true;
  }

  #readAny(depth: number): boolean {
    switch (this.#body[this.#at]) {
      case BYTE.quote:
        return this.#readString();
      case BYTE.openObject:
        return this.#readList(depth, BYTE.closeObject);
      case BYTE.openArray:
        return this.#readList(depth, BYTE.closeArray);
      case BYTE.t:
        return this.#readWord("true");
      case BYTE.f:
        return this.#readWord("false");
      case BYTE.n:
        return this.#readWord("null");
      default:
        return this.#readNumber();
    }
  }

  /** An object or an array, by its closing byte. */
  #readList(depth: number, close: number): boolean {
    this.#at++;
    this.#skipSpace();
    if (this.#body[this.#at] === close) {
      this.#at++;
      return true;
    }
    for (;;) {
      if (!(close === BYTE.closeObject ? this.#readMember(depth) : this.#readValue(depth + 1, -1, -1)))
        return false;
      this.#skipSpace();
      const byte = this.#body[this.#at++];
      if (byte === close) return true;
      if (byte !== BYTE.comma) return false;
    }
  }

  #readMember(depth: number): boolean {
    this.#skipSpace();
    const keyStart = this.#at;
    if (this.#body[keyStart] !== BYTE.quote || !this.#readString()) return false;
    const keyEnd = this.#at;
    this.#skipSpace();
    return this.#body[this.#at++] === BYTE.colon && this.#readValue(depth + 1, keyStart, keyEnd);
  }

  #readString(): boolean {
    const body = this.#body;
    const length = body.length;
    let at = this.#at + 1;
    let readUntil = at + SHORT_STRING_BYTES;
    while (at < length) {
      const byte = body[at] ?? 0;
      if (byte === BYTE.quote) {
        this.#at = at + 1;
        return true;
      }
      if (byte < 0x20) return false;
      at += byte === BYTE.backslash ? 2 : 1;
      if (at < readUntil) continue;
      const quote = body.indexOf(BYTE.quote, at);
      if (quote === -1) return false;
      // An odd number of backslashes in front of it make the quote a part of the string.
      let escapes = 0;
      while (quote - escapes > at && body[quote - escapes - 1] === BYTE.backslash) escapes++;
      at = quote + (escapes % 2);
      readUntil = at + SHORT_STRING_BYTES;
    }
    return false;
  }

  #readWord(word: string): boolean {
    const isThere = standsAt(this.#body, this.#at, word);
    this.#at += word.length;
    return isThere;
  }

  #readNumber(): boolean {
    const body = this.#body;
    const start = this.#at;
    let at = start;
    while (isOfNumber(body[at] ?? 0)) at++;
    this.#at = at;
    return at > start;
  }

  #skipSpace(): void {
    const body = this.#body;
    let at = this.#at;
    let byte = body[at] ?? 0xff;
    while (byte <= 0x20 && (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09)) {
      byte = body[++at] ?? 0xff;
    }
    this.#at = at;
  }
}

/** Digits, `+`, `-`, `.`, `E` and `e`. */
function isOfNumber(byte: number): boolean {
  if (byte >= 0x30 && byte <= 0x39) return true;
  return byte === 0x2d || byte === 0x2e || byte === 0x65 || byte === 0x45 || byte === 0x2b;
}
