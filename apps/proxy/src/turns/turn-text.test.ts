import fc from "fast-check";
import { expect, test } from "vitest";
import { TurnText } from "./turn-text.ts";

test("text within the limit is kept as it came", () => {
  const text = new TurnText(10);
  expect([text.add("héllo"), text.add(" you")]).toEqual([6, 4]);
  expect(text.read()).toBe("héllo you");
  expect(text).toMatchObject({ bytes: 10, isTruncated: false });
});

test("a longer text is cut before the character that doesn't fit", () => {
  const text = new TurnText(6);
  expect(text.add("ab😀😀")).toBe(6);
  expect(text.read()).toBe("ab😀");
  expect(text).toMatchObject({ bytes: 6, isTruncated: true });
  const odd = new TurnText(5);
  odd.add("ab😀");
  expect(odd.read()).toBe("ab");
});

test("nothing is kept after a cut, so that the text has no gap", () => {
  const text = new TurnText(5);
  text.add("ab😀");
  expect(text.add("c")).toBe(0);
  expect(text.read()).toBe("ab");
});

test("what is kept is a start of the whole and never over the limit", () => {
  const parts = fc.array(fc.string({ unit: "grapheme" }), { maxLength: 20 });
  fc.assert(
    fc.property(parts, fc.nat(60), (added, limit) => {
      const text = new TurnText(limit);
      const kept = added.map((part) => text.add(part)).reduce((sum, bytes) => sum + bytes, 0);
      const whole = added.join("");
      expect(whole.startsWith(text.read())).toBe(true);
      expect(Buffer.byteLength(text.read())).toBe(kept);
      expect(kept).toBeLessThanOrEqual(limit);
      expect(text.isTruncated).toBe(text.read() !== whole);
    }),
  );
});
