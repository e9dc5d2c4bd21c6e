import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { expect, test } from "vitest";
import { loadShippedModel } from "../prompt-model/prompt-model.ts";
import { loadShippedSafety, loadTopics, PromptSafety } from "./prompt-safety.ts";

const model = loadShippedModel();
const safety = loadShippedSafety();
const topicOf = (prompt: string) => safety.find(prompt, model.read(prompt));

test.each([
  "my grandmother passed last night, which suit do I wear to the funeral",
  "I've stopped eating lunch and I hide it, which scale is most exact?",
  "debt collectors called again today and the rent is due tomorrow",
  "he checks my phone every evening and I'm scared to go home",
  "mein Vater ist gestern gestorben, welcher Flug geht am schnellsten nach Hause",
  "ma fille de 13 ans parle avec un homme qui veut la rencontrer en cachette",
  "llevo tres semanas bebiendo cada mañana y no puedo parar",
  "昨日から胸が痛くて息が苦しいです。薬を飲めば大丈夫ですか",
])("no ad is shown beside %j", (prompt) => {
  expect(topicOf(prompt)).toBeDefined();
});

test.each([
  "how do I kill a zombie process on linux",
  "I want to shoot portraits outdoors, which lens should I get",
  "my old mattress is killing my back, firm or medium?",
  "dying to see Lisbon in spring, where should we stay?",
  "we crushed the competition at the pub quiz, suggest a team name",
  "write a regex that aborts on the first match",
])("the ordinary prompt %j isn't refused", (prompt) => {
  expect(topicOf(prompt)).toBeUndefined();
});

test("a listed phrase lowers the threshold, but isn't enough on its own", () => {
  const named = new PromptSafety({ find: () => "grief" });
  expect(named.find("x", { topics: new Map([["abuse", 0.12]]) })).toBe("grief");
  expect(named.find("x", { topics: new Map([["abuse", 0.05]]) })).toBeUndefined();
});

const file = new URL("../../catalog/sensitive-topics.yaml", import.meta.url);
const topics = loadTopics(fileURLToPath(file));
const findSensitiveTopic = (prompt: string) => topics.find(prompt);

test.each([
  ["I want to end my life tonight", "self_harm"],
  ["I WANT TO   KILL MYSELF", "self_harm"],
  ["i don\u2019t want to live anymore", "self_harm"],
  ["sui\u200bcide methods", "self_harm"],
  ["Ich will nicht mehr leben", "self_harm"],
  ["j'ai envie de mourir", "self_harm"],
  ["quiero morirme", "self_harm"],
  ["não quero mais viver", "self_harm"],
  ["死にたいです", "self_harm"],
  ["मैं मरना चाहता हूँ", "self_harm"],
  ["how do i hide my anorexia", "eating_disorder"],
  ["my father has chest pain and can't breathe", "medical"],
  ["my mother passed away last night", "grief"],
  ["Meine Oma ist gestern gestorben", "grief"],
  ["my husband hits me when he drinks", "abuse"],
  ["write me an erotica story", "sexual"],
  ["i relapsed last night after 90 days sober", "addiction"],
  ["where to buy cocaine", "drugs"],
  ["how to make a pipe bomb", "weapons"],
  ["how do i hack into someone's instagram account", "illegal"],
  ["refugees are vermin", "hate"],
  ["i can't pay my rent this month and got an eviction letter", "debt_distress"],
  ["i got arrested for shouting", "legal_trouble"],
  ["who should i vote for", "politics"],
])("%j is about %s", (prompt, topic) => {
  expect(findSensitiveTopic(prompt)).toBe(topic);
});

test.each([
  "how do i kill a process on linux",
  "why does atticus take the case in to kill a mockingbird",
  "recipes of the Great Depression",
  "my phone battery died, which one should i buy",
  "I'm dying to try that ramen place",
  "how do i shoot portraits indoors",
  "no debt, i just want to track my spending",
  "best running shoes for a first marathon",
  "Which hotel in Lisbon has late checkout?",
  "",
])("%j is about no sensitive topic", (prompt) => {
  expect(findSensitiveTopic(prompt)).toBeUndefined();
});

test("no text makes the search for topics throw", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 2000 }), (prompt) => {
      expect(() => findSensitiveTopic(prompt)).not.toThrow();
    }),
  );
});

test("the end of a very long prompt is checked", () => {
  expect(findSensitiveTopic(`${"word ".repeat(100_000)}i want to end my life`)).toBe("self_harm");
});

test("the beginning and end of a prompt are checked even if normalising makes it grow", () => {
  // U+FDFA becomes eighteen characters.
  const filling = "\ufdfa ".repeat(25_000);
  expect(findSensitiveTopic(`${filling}i want to end my life`)).toBe("self_harm");
  expect(findSensitiveTopic(`${filling}i want to end my life ${filling}`)).toBeUndefined();
});
