import { expect, test } from "vitest";
import { enhancedText } from "./enhanced-text.ts";

const MESSAGE = { messageText: "I am sad.\n\nWhich tent?", userText: "Which tent?" };

test.each([
  ["<ad>x</ad>\nI am sad.\n\nWhich tent?\nEnd", "<ad>x</ad>\nWhich tent?\nEnd"],
  ["I am sad.\n\nWhich tent?", "Which tent?"],
  ["I am sad. Which tent? <ad>", undefined],
  ["I am sad.\n\nWhich tent? I am sad.\n\nWhich tent?", undefined],
  ["<ad>", undefined],
])("of a message with several texts the prompt %j leaves the last one: %j", (prompt, expected) => {
  expect(enhancedText({ ...MESSAGE, prompt })).toBe(expected);
});

test("a message with one text may be changed in any way", () => {
  expect(enhancedText({ messageText: "Which tent?", userText: "Which tent?", prompt: "<ad>" })).toBe("<ad>");
});
