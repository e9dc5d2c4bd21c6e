import { expect, test } from "vitest";
import { normalizable } from "./normalizable.ts";

test.each([
  ["accents", "\u0301\u0316"],
  ["accents with invisible characters between them", "\u0301\u200b"],
  ["half-width voicing marks", "\uff9e\u0301"],
  ["marks of two code units", "\u{1d165}"],
])("of a letter with many %s thirty are left", (_, marks) => {
  const left = [...normalizable(`a${marks.repeat(1000)}b`)];
  expect(left).toHaveLength(32);
  expect([left.at(0), left.at(-1)]).toEqual(["a", "b"]);
});

test.each([
  "Đặng Thị",
  "मरना चाहता हूँ",
  "🏳\ufe0f\u200d🌈",
  "z\u0301\u0302\u0303\u0316\u0317algo",
  "zero\u200b\u200bwidth",
  "",
])("%j stays as it is", (text) => {
  expect(normalizable(text)).toBe(text);
});

test("of no character normalising makes more than six", () => {
  for (let code = 0; code <= 0x10ffff; code += 1) {
    const char = String.fromCodePoint(code);
    if (normalizable(char).normalize("NFKC").length > 6 * char.length) {
      expect.fail(`U+${code.toString(16)}`);
    }
  }
});
