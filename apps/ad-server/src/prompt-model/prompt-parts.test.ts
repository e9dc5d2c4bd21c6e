import { JSON_DEPTH_MAX, JSON_VALUES_MAX } from "@adrelay/contract";
import fc from "fast-check";
import { expect, test } from "vitest";
import { runsOf, sentencesOf, spansOf, turnsOf } from "./prompt-parts.ts";

/** Of each turn who says it, and the words without what surrounds them. */
const turns = (prompt: string) =>
  turnsOf(prompt).flatMap(({ isUser, text }) => {
    const words = text.match(/[\p{L}\p{M}]+(?:[ ,'][\p{L}\p{M}]+)*/gu) ?? [];
    return words.length === 0 ? [] : [`${isUser ? "user" : "other"}: ${words.join("|")}`];
  });

test.each([
  ["User: hello Assistant: hi there User: goodbye", ["user: hello", "other: hi there", "user: goodbye"]],
  ["user: hello\nassistant: hi there\nuser: goodbye", ["user: hello", "other: hi there", "user: goodbye"]],
  ["Before all that.\nHuman: hello\nAI: hi", ["user: Before all that", "user: hello", "other: hi"]],
  ["**User:** hello\n**Bot:** hi", ["user: hello", "other: hi"]],
  ["### Human: hello\n### Assistant: hi", ["user: hello", "other: hi"]],
  ["[user]: hello [bot]: hi", ["user: hello", "other: hi"]],
  ["- Customer: hello\n- Agent: hi", ["user: hello", "other: hi"]],
  ["<|im_start|>user\nhello\n<|im_start|>assistant\nhi", ["user: hello", "other: hi"]],
  ["Nutzerin: hallo\nAssistent: guten Tag", ["user: hallo", "other: guten Tag"]],
  ["Utilisateur : bonjour\nAssistant : salut", ["user: bonjour", "other: salut"]],
  ["Usuario: hola\nAsistente: buenas", ["user: hola", "other: buenas"]],
  ["Usuária: olá\nSistema: oi", ["user: olá", "other: oi"]],
  ["उपयोगकर्ता: नमस्ते\nसहायक: हाँ", ["user: नमस्ते", "other: हाँ"]],
  ["ユーザー：こんにちは アシスタント：はい", ["user: こんにちは", "other: はい"]],
])("the turns of %j are %j", (prompt, expected) => {
  expect(turns(prompt)).toEqual(expected);
});

test.each([undefined, 2])("messages in JSON with an indentation of %s are turns", (indentation) => {
  const messages = [
    { role: "system", content: "be brief" },
    { role: "user", content: "hello" },
    { role: "assistant", content: [{ type: "text", text: "hi" }] },
    { role: "user", name: "bo", content: "goodbye" },
  ];
  expect(turns(JSON.stringify(messages, null, indentation))).toEqual([
    "other: be brief",
    "user: hello",
    "other: text|hi",
    "user: bo|goodbye",
  ]);
});

test("messages in JSON are turns, whatever the order of their members", () => {
  const messages = [
    { content: "hello", role: "user" },
    { parts: [{ text: "hi" }], role: "model" },
    { content: "12 C", role: "tool" },
    { content: ["good", "bye"], name: "bo", role: "user" },
  ];
  const expected = ["user: hello", "other: hi", "other: C", "user: good|bye|bo"];
  expect(turns(JSON.stringify(messages))).toEqual(expected);
  expect(turns(JSON.stringify({ about: "trips", messages, end: "more" }))).toEqual([
    "user: trips",
    ...expected,
    "user: more",
  ]);
});

test("of messages that can't be parsed all is the user's if their roles are behind their texts", () => {
  const prompt = '[{"content":"hello","role":"user"},{"content":"hi","role":"assistant"},';
  expect(turnsOf(prompt)).toEqual([{ isUser: true, text: prompt }]);
});

test.each([
  ["more values", JSON_VALUES_MAX, 1],
  ["more levels", 1, JSON_DEPTH_MAX + 1],
])("messages with %s than the body of a request may have aren't parsed", (_, values, levels) => {
  const nested = `${"[".repeat(levels)}${"0,".repeat(values)}0${"]".repeat(levels)}`;
  const prompt = `[{"content":"hello","role":"user"},{"content":"hi","role":"assistant"},${nested}]`;
  expect(turnsOf(prompt)).toEqual([{ isUser: true, text: prompt }]);
});

test("of long messages the beginning and the end are read", () => {
  const messages = ["a", "b", "c"].map((letter) => ({ content: letter.repeat(100), role: "user" }));
  const texts = turnsOf(JSON.stringify(messages), 50).map(({ text }) => text.replaceAll("\n", ""));
  expect(texts).toEqual(["a".repeat(50), "c".repeat(30)]);
});

// What is taken for the assistant's words isn't judged. So a common word must not begin its turn.
test.each([
  "Explain to me: what does the model: field in this form mean?",
  "Is this for me\nor for the client\nor the ai\nor who",
  "Model: X500\nSystem: Linux\nThe fan is loud.",
  "Assistant: what can I do for you?",
  "",
])("%j is one turn of the user", (prompt) => {
  expect(turnsOf(prompt)).toEqual([{ isUser: true, text: prompt }]);
});

test.each([
  ["I like it. It costs 3.5 euros at example.com!\nReally?", 3],
  ["とても好きです。本当に？はい", 3],
  ["यह अच्छा है। सच में?", 2],
  ["one; two", 2],
  ['"hello\\nthere"', 2],
  ["?! ... 42", 0],
  ["", 0],
])("%j has the given number of sentences, which is %i", (text, count) => {
  expect(sentencesOf(text)).toHaveLength(count);
});

test("each item of a long list is a part, and so is the whole list", () => {
  const list = "milk, two pounds of flour, eggs, butter, a card for my aunt";
  expect(sentencesOf(list)).toEqual([...list.split(", "), list]);
  expect(sentencesOf("milk, flour, eggs")).toEqual(["milk, flour, eggs"]);
});

test("a run of words without end is cut into overlapping windows", () => {
  const words = Array.from({ length: 100 }, (_, index) => `w${index}x`);
  const windows = sentencesOf(words.join(" "));
  expect(windows.every((window) => window.split(" ").length <= 30)).toBe(true);
  const pairs = words.slice(1).map((word, index) => `${words[index]} ${word}`);
  expect(pairs.filter((pair) => !windows.some((window) => window.includes(pair)))).toEqual([]);
});

test("no letter of a text is in no sentence", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom("ab", "犬", ". ", ", ", "\n", " ", "; ", "!", "- ")), (parts) => {
      const text = parts.join("");
      const letters = (of: string) => new Set(of.match(/\p{L}/gu));
      expect(letters(sentencesOf(text).join(" "))).toEqual(letters(text));
    }),
  );
});

const LENGTH = 1_000_000;
const repeated = (part: string) => part.repeat(LENGTH / part.length);

test.each([
  ["User:", "User: "],
  ["speakers on lines", "User:\n"],
  ["roles", '"role" : "user" '],
  ["roles without an end", '"role"   '],
  ["marks", "#"],
  ["blanks", " "],
  ["line breaks", "\n"],
  ["blanks and breaks", " \t\n"],
  ["full stops", ". "],
  ["quotes", '."'],
  ["commas", "a, "],
  ["hyphens", " - "],
  ["no blanks", "a"],
  ["backslashes", "\\n"],
])("a megabyte of %s is cut in time that grows with its length", { timeout: 60_000 }, (_, part) => {
  const text = repeated(part);
  const begun = performance.now();
  turnsOf(text);
  sentencesOf(text);
  // Work that grows with the square of the length takes minutes.
  expect(performance.now() - begun).toBeLessThan(10_000);
});

test("a message without a full stop is cut into overlapping runs of words", () => {
  expect(runsOf("one two three four five six seven eight nine ten")).toEqual([
    "one two three four five six",
    "four five six seven eight nine",
    "seven eight nine ten",
  ]);
  expect(runsOf("I can't go on, which shoes should I buy?")).toEqual([
    "I can't go on",
    "which shoes should I buy?",
  ]);
  expect(runsOf("yes, please")).toEqual([]);
});

test("spans are ten words of a longer sentence, and overlap", () => {
  const words = Array.from({ length: 15 }, (_, index) => `w${index}`);
  expect(spansOf(words.join(" "))).toEqual([
    words.slice(0, 10).join(" "),
    words.slice(4, 14).join(" "),
    words.slice(8).join(" "),
  ]);
  expect(spansOf(words.slice(5).join(" "))).toEqual([]);
});

test("each word of a long sentence is in a run", () => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-z]{1,8}$/), { minLength: 3, maxLength: 60 }), (words) => {
      const inRuns = new Set(runsOf(words.join(" ")).flatMap((run) => run.split(" ")));
      expect(words.filter((word) => !inRuns.has(word))).toEqual([]);
    }),
  );
});
