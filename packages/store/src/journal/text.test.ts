import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { cutText, TURN_TEXT_MAX_BYTES, turnTextOf } from "./text.ts";
import { TURN_LEASE_MS } from "./types.ts";

test("pieces of a step are joined without anything, and steps by a blank line in their order", () => {
  const stored = ["2,1,And then", "1,1,Try ", "1,2,Fizzwater.", "2,2, more."];
  expect(turnTextOf(stored)).toEqual({ text: "Try Fizzwater.\n\nAnd then more.", isUnreadable: false });
});

test("a step's own text, and a whole piece, stand for all its pieces", () => {
  const stored = ["1,1,Tr", "1,*,Try it", "1,2,late", "2,1,An", "3,1,x"];
  expect(turnTextOf(stored, { step: 2, text: "And more" }).text).toBe("Try it\n\nAnd more\n\nx");
});

test("a step without text leaves no blank line", () => {
  expect(turnTextOf(["1,1,Hello"], { step: 2, text: "" }).text).toBe("Hello");
  expect(turnTextOf([])).toEqual({ text: "", isUnreadable: false });
});

test("a piece that can't be read is left out and told", () => {
  expect(turnTextOf(["1,1,a,\nb", "nonsense"])).toEqual({ text: "a,\nb", isUnreadable: true });
});

test.each(["a", "é", "€", "😀"])("a text of %s is cut at its limit between two characters", (character) => {
  const size = Buffer.byteLength(character);
  const cut = cutText(character.repeat(TURN_TEXT_MAX_BYTES / size + 10));
  expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(TURN_TEXT_MAX_BYTES);
  expect(Buffer.byteLength(cut)).toBeGreaterThan(TURN_TEXT_MAX_BYTES - size);
  expect(cut.replaceAll(character, "")).toBe("");
});

test("a text within the limit stays as it is", () => {
  const text = "\ud800".repeat(TURN_TEXT_MAX_BYTES / 3);
  expect(cutText(text)).toBe(text);
});

test("the scripts have the same lease and the same limit of text", () => {
  const lua = readFileSync(new URL("turn.lua", import.meta.url), "utf8");
  expect(lua).toContain(`local LEASE_MS = ${TURN_LEASE_MS}\n`);
  expect(lua).toContain("local TEXT_MAX_BYTES = 1024 * 1024\n");
  expect(TURN_TEXT_MAX_BYTES).toBe(1024 * 1024);
});
