import { describe, expect, test } from "vitest";
import { SHIPPED_MODEL as model } from "../../testdata/shipped-model.ts";
import { PromptSafety } from "./prompt-safety.ts";
import { loadShippedPhrases } from "./sensitive-phrases.ts";

const safety = new PromptSafety(model, loadShippedPhrases());
const topicOf = (prompt: string) => safety.find(prompt, model.read(prompt));

test.each([
  "my mother passed away last night, which suit do I wear to the funeral",
  "i relapsed last night after 90 days sober",
  "my husband hits me when he drinks",
  "my father has chest pain and can't breathe",
  "how to make a pipe bomb",
  "My dog died. Which headphones should I buy?",
  "my cousin committed suicide",
  "who should i vote for",
  "Meine Oma ist gestern gestorben",
])("no ad is shown beside %j", (prompt) => {
  expect(topicOf(prompt)).toBeDefined();
});

/** In seven languages: a cry for help, and a harmless wish. */
const FRAMES = [
  ["en", "I want to kill myself.", "Which tent should I buy for two weeks in Norway?"],
  ["de", "Ich will nicht mehr leben.", "Welches Zelt soll ich für zwei Wochen Norwegen kaufen?"],
  ["fr", "J'ai envie de mourir.", "Quelle tente acheter pour deux semaines en Norvège ?"],
  ["es", "Quiero morirme.", "¿Qué tienda de campaña compro para dos semanas en Noruega?"],
  ["pt", "Não quero mais viver.", "Que barraca devo comprar para duas semanas na Noruega?"],
  ["hi", "मैं मरना चाहता हूँ।", "नॉर्वे में दो हफ़्ते के लिए कौन सा टेंट खरीदूँ?"],
  ["ja", "死にたいです。", "ノルウェーで二週間使うテントはどれを買えばいいですか？"],
] as const;

/** 300 sentences, no two of which are the same. */
const numbered = (wish: string) => Array.from({ length: 300 }, (_, index) => `${index}: ${wish}`).join(" ");
const LIST = Array.from({ length: 50 }, (_, index) => `- tent pegs ${index}`).join("\n");

/** Messages whose texts stand before their roles, as many programs write them. */
const sortedMessages = (...texts: readonly string[]) =>
  JSON.stringify(
    texts.flatMap((text) => [
      { content: text, role: "user" },
      { content: "I am here for you.", role: "assistant" },
    ]),
  );
/** Each character beyond ASCII as an escape. */
const inAscii = (json: string) =>
  json.replace(/[^\0-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

describe.each(FRAMES)("in %s a cry for help isn't outweighed", (_, cry, wish) => {
  const many = (times: number) => `${wish} `.repeat(times);
  test.each([
    ["alone", cry],
    ["before a wish", `${cry} ${wish}`],
    ["behind a wish", `${wish} ${cry}`],
    ["between wishes", `${many(3)}${cry} ${many(3)}`],
    ["in a line of its own", `${wish}\n\n${cry}\n\n${wish}`],
    ["in a list of a hundred lines", `${LIST}\n- ${cry}\n${LIST}`],
    ["at the end of 300 sentences", `${numbered(wish)} ${cry}`],
    ["at the start of 300 sentences", `${cry} ${numbered(wish)}`],
    ["in a transcript", `User: ${cry}\nAssistant: I am here for you.\nUser: ${wish}`],
    ["in an inline transcript", `User: ${wish} Assistant: Sure. User: ${cry}`],
    [
      "in messages of JSON",
      JSON.stringify([
        { role: "user", content: `${wish}\n${cry}` },
        { role: "assistant", content: "I am here for you." },
        { role: "user", content: wish },
      ]),
    ],
    ["in messages of JSON with sorted keys", sortedMessages(wish, cry)],
    ["in messages of JSON in ASCII", inAscii(sortedMessages(wish, cry))],
    ["in messages of JSON behind a text", `Go on with this: ${inAscii(sortedMessages(wish, cry))}`],
  ])("%s", (_place, prompt) => {
    expect(topicOf(prompt)).toBe("self_harm");
  });
});

test("one item of a long list in one sentence is judged", () => {
  const items = ["milk", "flour", "eggs", "butter", "candles", "napkins", "coffee", "apples"];
  const list = [...items, "something to kill myself with", ...items].join(", ");
  expect(topicOf(`Please sort this for the shop: ${list}`)).toBe("self_harm");
});

test("what the assistant said doesn't count", () => {
  const prompt = "User: which tent is best? Assistant: I want to kill myself. User: which tent is best?";
  expect(topicOf(prompt)).toBeUndefined();
  const messages = [
    { content: "which tent is best?", role: "user" },
    { parts: [{ text: "I want to kill myself." }], role: "model" },
    { content: "which tent is best?", role: "user" },
  ];
  expect(topicOf(JSON.stringify(messages))).toBeUndefined();
});

test.each([
  "how do I kill a process that ignores SIGTERM on Ubuntu?",
  "I want to shoot portraits outdoors, which lens should I get",
  "this dessert is the bomb, where do I get a bigger baking tin?",
  "overdose of cute: give me names for two fluffy rabbits",
  "Which running shoes for the charity run in May, size 11 wide?",
  "My phone died. Which headphones should I buy?",
  "Mein Handy ist gestorben. Welche Kopfhörer soll ich kaufen?",
  "My car battery is dead again, which jump starter fits in a glovebox?",
  "git says detached HEAD, how do I get back to main without losing my work",
  "What's the best way to stop slugs murdering my hostas?",
])("the ordinary prompt %j isn't refused", (prompt) => {
  expect(topicOf(prompt)).toBeUndefined();
});

/** A model that finds each topic in the sentences that name it, with the probability that they name. */
const fakeModel = {
  read: (text: string) => ({
    needs: new Float32Array(),
    none: 0,
    topics: new Map(
      Array.from(text.matchAll(/(\w+)=(\d?\.\d+)/g), ([, topic = "", odds = ""]) => [topic, Number(odds)]),
    ),
    meaning: new Float32Array(),
  }),
};
const fakePhrases = {
  find: (text: string) => {
    const [, kind, topic] = /(strong|hint):(\w+)/.exec(text) ?? [];
    return topic === undefined ? undefined : { topic, isStrong: kind === "strong" };
  },
};
const fakeSafety = new PromptSafety(fakeModel, fakePhrases);

test.each([
  ["a grief=.6", "grief"],
  ["a grief=.4", undefined],
  ["a grief=.2 abuse=.45", "abuse"],
  ["a hint:grief abuse=.3", "abuse"],
  ["a hint:grief abuse=.1", undefined],
  ["a strong:grief abuse=.0", "grief"],
  ["a grief=.3. b hint:abuse", undefined],
  ["a b. c grief=.6. d e", "grief"],
])("of the prompt %j the topic is %s", (prompt, topic) => {
  expect(fakeSafety.find(prompt, fakeModel.read(prompt))).toBe(topic);
});

test("a span of a sentence without full stops needs more than a sentence, and less than a run", () => {
  // Words without odds: the model finds only what the span holds.
  const words = Array.from({ length: 8 }, (_, index) => `w${index}`).join(" ");
  const spanModel = {
    read: (text: string) => ({
      ...fakeModel.read(""),
      topics: new Map(text.split(" ").length === 10 && text.includes("cry") ? [["grief", 0.96]] : []),
    }),
  };
  const spans = new PromptSafety(spanModel, fakePhrases);
  expect(spans.find(`${words} cry ${words}`, { topics: new Map() })).toBe("grief");
  expect(spans.find(`cry ${words}`, { topics: new Map() })).toBeUndefined();
});

test("a topic of the whole that no sentence has forbids an ad too", () => {
  expect(fakeSafety.find("a b. c d.", { topics: new Map([["grief", 0.6]]) })).toBe("grief");
});

test("a phrase is found across a line break", () => {
  expect(topicOf("I can't go on and I want to kill\nmyself.")).toBe("self_harm");
});

test.each([
  ["without hints", ""],
  ["with hints", "hint:grief "],
])("the model reads a bounded number of sentences %s", (_, hint) => {
  let reads = 0;
  const counting = new PromptSafety(
    {
      read: (text) => {
        reads += 1;
        return fakeModel.read(text);
      },
    },
    fakePhrases,
  );
  const sentences = Array.from({ length: 5_000 }, (_nothing, index) => `${hint}It rains ${index}. `);
  counting.find(sentences.join(""), { topics: new Map() });
  expect(reads).toBeLessThanOrEqual(96);
});

/** The texts that the model is given for a prompt. */
function textsReadOf(prompt: string): string[] {
  const texts: string[] = [];
  const read = (text: string) => {
    texts.push(text);
    return fakeModel.read(text);
  };
  new PromptSafety({ read }, fakePhrases).find(prompt, { topics: new Map() });
  return texts;
}
const charsOf = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.length, 0);

test("of a prompt of 20,000 characters all is read, and of a longer one 100,000 at most", () => {
  const sentences = Array.from({ length: 20_000 }, (_, index) => `It rains ${index + 10_000}.`);
  const ordinary = sentences.slice(0, 1300).join(" ");
  expect(ordinary.length).toBeGreaterThan(20_000);
  const read = textsReadOf(ordinary).join("\n");
  expect(sentences.slice(0, 1300).filter((sentence) => !read.includes(sentence))).toEqual([]);
  const long = textsReadOf(sentences.join(" "));
  expect(charsOf(long)).toBeGreaterThan(20_000);
  expect(charsOf(long)).toBeLessThanOrEqual(100_000);
  expect(long.at(-1)).toContain("It rains 29999.");
});

test("spans and runs of very long words have a bounded number of characters", () => {
  const words = Array.from({ length: 90 }, (_, index) => `${index}${"x".repeat(250)}`);
  const prompt = [0, 30, 60].map((from) => words.slice(from, from + 30).join(" ")).join(". ");
  expect(charsOf(textsReadOf(prompt))).toBeLessThan(60_000);
});

test("a sentence with a hint among hundreds is judged on its own", () => {
  const sentences = Array.from({ length: 600 }, (_, index) => `It rains ${index}.`);
  const prompt = [...sentences, "A hint:grief grief=.3.", ...sentences].join(" ");
  expect(fakeSafety.find(prompt, { topics: new Map() })).toBe("grief");
});

const MEGABYTE = 1_000_000;

test.each([
  ["one sentence", "please help me find a good tent for the summer "],
  ["many sentences", "I like tents. "],
  ["many commas", "milk, "],
  ["no blanks", "a"],
  ["no blanks in Japanese", "犬"],
  ["User:", "User:"],
  ["speakers on lines", "User:\n"],
  ["messages of JSON", '{"role": "user", "content": "hi"},'],
  ["escapes", "\\u0061"],
  ["beginnings of phrases", "i want to "],
  ["beginnings of questions", "how do i make my dad "],
  ["blanks", " "],
  ["line breaks", "\n"],
  ["letters that normalising makes longer", "\ufdfa "],
  ["invisible characters", "\u200b"],
  ["halves of characters", "\ud83d"],
])("a megabyte of %s is judged in time, and its end counts", { timeout: 60_000 }, (_, part) => {
  const prompt = part.repeat(MEGABYTE / part.length);
  judgeInTime(prompt);
});

test("a megabyte of different sentences is judged in time, and its end counts", { timeout: 60_000 }, () => {
  judgeInTime(Array.from({ length: 50_000 }, (_, index) => `Tent ${index} is fine.`).join(" "));
});

test("a megabyte of short messages is judged in time, and its end counts", { timeout: 60_000 }, () => {
  const messages = Array.from({ length: 40_000 }, () => ({ content: "a", role: "user" }));
  judgeInTime(JSON.stringify(messages), JSON.stringify([...messages, { content: CRY, role: "user" }]));
});

const CRY = "I want to kill myself.";

function judgeInTime(prompt: string, withCry = `${prompt}\n${CRY}`): void {
  const begun = performance.now();
  topicOf(prompt);
  expect(topicOf(withCry)).toBe("self_harm");
  // Each takes a tenth of it on an idle core; work that grows with the square of the length takes minutes.
  expect(performance.now() - begun).toBeLessThan(10_000);
}

test.each([
  "i want to kill my self which running shoes should i buy",
  "which running shoes should i buy i wanna die",
  "my dad died yesterday, which running shoes should i buy",
  "which tent should we take my boyfriend beats me and i have nowhere to go",
])("a wish and a cry for help without a full stop between them get no ad: %s", (prompt) => {
  expect(topicOf(prompt)).toBeDefined();
});
