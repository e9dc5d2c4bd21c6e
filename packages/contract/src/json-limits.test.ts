import fc from "fast-check";
import { expect, test } from "vitest";
import {
  countUnescapedBytes,
  isJsonWithinLimits,
  JSON_DEPTH_MAX,
  JSON_ESCAPE_FACTOR_MAX,
  JSON_VALUES_MAX,
} from "./json-limits.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const nested = (depth: number, open: string, close: string) => open.repeat(depth) + close.repeat(depth);
const members = (count: number) =>
  `{${Array.from({ length: count }, (_, index) => `"k${index}":1`).join(",")}}`;

test.each([
  ["arrays of the greatest depth", nested(JSON_DEPTH_MAX, "[", "]"), true],
  ["deeper arrays", nested(JSON_DEPTH_MAX + 1, "[", "]"), false],
  ["deeper objects", `${'{"a":'.repeat(JSON_DEPTH_MAX + 1)}1${"}".repeat(JSON_DEPTH_MAX + 1)}`, false],
  ["arrays that are never closed", "[".repeat(6_000_000), false],
  ["as many members as are allowed", members(JSON_VALUES_MAX), true],
  ["more members", members(JSON_VALUES_MAX + 1), false],
  ["more elements", `[${"1,".repeat(JSON_VALUES_MAX)}1]`, false],
  ["more empty objects", `[${"{},".repeat(JSON_VALUES_MAX)}1]`, false],
  ["brackets and commas in a string", JSON.stringify({ a: '[{,"\\'.repeat(100_000) }), true],
  ["many arrays side by side", `[${"[[]],".repeat(3000)}1]`, true],
  ["a string that is never closed", `{"a":"${"[".repeat(1000)}\\`, true],
  ["no bytes", "", true],
])("%s: within the limits is %j", (_what, json, expected) => {
  expect(isJsonWithinLimits(bytesOf(json))).toBe(expected);
});

test("ordinary JSON is within the limits", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), (json) => {
      expect(isJsonWithinLimits(bytesOf(json))).toBe(true);
    }),
  );
});

test("strings end at their closing quote, however long and escaped they are", () => {
  const pieces = fc.constantFrom('"', "\\", "[", "{,", "x".repeat(70), "\u2014".repeat(30));
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 30 }), (text) => {
      const json = (depth: number) => `[${JSON.stringify(text.join(""))},${nested(depth - 1, "[", "]")}]`;
      expect(isJsonWithinLimits(bytesOf(json(JSON_DEPTH_MAX)))).toBe(true);
      expect(isJsonWithinLimits(bytesOf(json(JSON_DEPTH_MAX + 1)))).toBe(false);
      const values = (count: number) => `[${JSON.stringify(text.join(""))}${",1".repeat(count - 1)}]`;
      expect(isJsonWithinLimits(bytesOf(values(JSON_VALUES_MAX)))).toBe(true);
      expect(isJsonWithinLimits(bytesOf(values(JSON_VALUES_MAX + 1)))).toBe(false);
    }),
  );
});

/** As Python's `json.dumps` does it. */
const escapeNonAscii = (json: string) =>
  json.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
const escapeAll = (text: string) =>
  Array.from({ length: text.length }, (_, at) => text.charCodeAt(at).toString(16).padStart(4, "0"))
    .map((digits, at) => `\\u${at % 2 === 0 ? digits : digits.toUpperCase()}`)
    .join("");

test("a text has the same length however its characters are escaped", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 50 }), (text) => {
      const length = bytesOf(text).length + 2;
      expect(countUnescapedBytes(bytesOf(JSON.stringify(text)))).toBe(length);
      expect(countUnescapedBytes(bytesOf(escapeNonAscii(JSON.stringify(text))))).toBe(length);
      expect(countUnescapedBytes(bytesOf(`"${escapeAll(text)}"`))).toBe(length);
    }),
  );
});

test("escapes make a text at most the named factor longer", () => {
  const text = "a".repeat(1000);
  const escaped = bytesOf(`"${escapeAll(text)}"`);
  expect(escaped.length).toBe(JSON_ESCAPE_FACTOR_MAX * text.length + 2);
  expect(countUnescapedBytes(escaped)).toBe(text.length + 2);
});
