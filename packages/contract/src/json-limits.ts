/**
 * Limits on JSON from outside, checked on its bytes before it is parsed. `JSON.parse` needs seconds for a few megabytes of
 * open brackets, and tenths of a second for as many short members. Meanwhile the process serves nobody.
 *
 * Both functions read each byte once, a megabyte in one or two milliseconds. They don't check whether the bytes are JSON.
 */

/** The deepest nesting that is parsed. */
export const JSON_DEPTH_MAX = 100;
/** The most values that are parsed, in all objects and arrays together. */
export const JSON_VALUES_MAX = 20_000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const LOWER_U = 0x75;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Whether JSON is so flat and has so few values that parsing it takes little time. Each bracket that opens and each comma
 * counts as one value.
 */
export function isJsonWithinLimits(bytes: Uint8Array): boolean {
  return isSmallAndFlat(bytes) || countsWithinLimits(bytes);
}

/** True for most bodies: they have too few bytes and brackets to exceed a limit, wherever these stand. */
function isSmallAndFlat(bytes: Uint8Array): boolean {
  if (bytes.length > JSON_VALUES_MAX) {
    return false;
  }
  let brackets = 0;
  for (const bracket of [OPEN_OBJECT, OPEN_ARRAY]) {
    for (let at = bytes.indexOf(bracket); at !== -1 && brackets <= JSON_DEPTH_MAX; ) {
      brackets += 1;
      at = bytes.indexOf(bracket, at + 1);
    }
  }
  return brackets <= JSON_DEPTH_MAX;
}

function countsWithinLimits(bytes: Uint8Array): boolean {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
    } else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      depth += 1;
      values += 1;
    } else if (byte === COMMA) {
      values += 1;
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) {
      depth -= 1;
    }
    if (depth > JSON_DEPTH_MAX || values > JSON_VALUES_MAX) {
      return false;
    }
  }
  return true;
}

/** How far a string is read byte by byte. A call of `indexOf` costs more than that, and is quicker on what is longer. */
const NEAR_BYTES = 64;

/** Index of the quote that closes the string opened at `start`; at least the length if none does. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length) {
    const near = Math.min(at + NEAR_BYTES, bytes.length);
    while (at < near && bytes[at] !== QUOTE) {
      at += bytes[at] === BACKSLASH ? 2 : 1;
    }
    if (at >= near && bytes[at] !== QUOTE) {
      at = endOfPlain(bytes, at);
    }
    if (bytes[at] === QUOTE) {
      return at;
    }
  }
  return at;
}

/** Index of the next quote, or of what follows it if it is escaped; the length if there is none. `from` isn't escaped. */
function endOfPlain(bytes: Uint8Array, from: number): number {
  const quote = bytes.indexOf(QUOTE, from);
  if (quote === -1) {
    return bytes.length;
  }
  let backslashes = 0;
  while (quote - 1 - backslashes >= from && bytes[quote - 1 - backslashes] === BACKSLASH) {
    backslashes += 1;
  }
  return backslashes % 2 === 0 ? quote : quote + 1;
}

/** How many times as long as without escapes a JSON text can be: `\u0061` is one byte. */
export const JSON_ESCAPE_FACTOR_MAX = 6;

/**
 * The length of JSON in UTF-8 if its strings were written without escapes. So a text has the same length whether a caller
 * escapes it, as Python's `json.dumps` does with everything outside ASCII, or not.
 */
export function countUnescapedBytes(bytes: Uint8Array): number {
  let count = bytes.length;
  for (let at = 0; at < bytes.length; at += 1) {
    if (bytes[at] === BACKSLASH) {
      const isUnicode = bytes[at + 1] === LOWER_U;
      count -= isUnicode ? JSON_ESCAPE_FACTOR_MAX - utf8BytesOf(codeUnitAt(bytes, at + 2)) : 1;
      at += isUnicode ? JSON_ESCAPE_FACTOR_MAX - 1 : 1;
    }
  }
  return count;
}

/** The code unit that four hex digits spell. */
function codeUnitAt(bytes: Uint8Array, start: number): number {
  let unit = 0;
  for (let at = start; at < start + 4; at += 1) {
    const digit = bytes[at] ?? 0;
    // The low bits of a digit are its value, and those of a letter are its place in the alphabet, from 1 on.
    unit = unit * 16 + (digit & 0xf) + (digit >> 6) * 9;
  }
  return unit;
}

/** The bytes of a code unit in UTF-8. Two surrogates are one character of four bytes. */
function utf8BytesOf(unit: number): number {
  if (unit < 0x80) {
    return 1;
  }
  return unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3;
}
