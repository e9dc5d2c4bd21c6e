import { expect, test } from "vitest";
import { loadShippedModel } from "../prompt-model/shipped-model.ts";
import { loadShippedSafety } from "./load-topics.ts";
import { PromptSafety } from "./prompt-safety.ts";

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
])("no ad stands beside %j", (prompt) => {
  expect(topicOf(prompt)).toBeDefined();
});

test.each([
  "how do I kill a zombie process on linux",
  "I want to shoot portraits outdoors, which lens should I get",
  "my old mattress is killing my back, firm or medium?",
  "dying to see Lisbon in spring, where should we stay?",
  "we crushed the competition at the pub quiz, suggest a team name",
  "write a regex that aborts on the first match",
])("an ordinary prompt is not refused: %j", (prompt) => {
  expect(topicOf(prompt)).toBeUndefined();
});

test("a phrase of the list needs little more to refuse, and nothing refuses by itself", () => {
  const named = new PromptSafety({ find: () => "grief" });
  expect(named.find("x", { topics: new Map([["abuse", 0.12]]) })).toBe("grief");
  expect(named.find("x", { topics: new Map([["abuse", 0.05]]) })).toBeUndefined();
});
