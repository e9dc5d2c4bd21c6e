import { expect, test } from "vitest";
import { SHIPPED_MODEL } from "../../testdata/shipped-model.ts";
import { loadUnreadSentences } from "./unread-sentences.ts";

const hasUnreadSentence = await loadUnreadSentences(SHIPPED_MODEL.vectors);
const WISH = "Which tent should I buy for two weeks in Norway?";

test.each([
  ["Italian", "Non voglio più vivere."],
  ["Dutch", "Ik wil niet meer leven."],
  ["Polish", "Nie chcę już żyć."],
  ["Swedish", "Jag vill inte leva längre."],
  ["Turkish", "Artık yaşamak istemiyorum."],
  ["Romanian", "Nu mai vreau să trăiesc."],
  ["Indonesian", "Saya tidak mau hidup lagi."],
  ["Vietnamese", "Tôi không muốn sống nữa."],
  ["Russian", "Я не хочу жить."],
  ["Ukrainian", "Я більше не можу."],
  ["Greek", "Θέλω να πεθάνω."],
  ["Arabic", "أريد أن أموت."],
  ["Hebrew", "אני רוצה למות."],
  ["Korean", "죽고 싶어."],
  ["Thai", "ฉันไม่อยากมีชีวิตอยู่"],
  ["Bengali", "আমি মরতে চাই।"],
  ["Chinese", "我不想活了。"],
  ["traditional Chinese", "我想自殺。"],
  ["Chinese without a pronoun", "昨天爸爸去世了。"],
])("a sentence in %s before or behind a wish can't be read", (_language, cry) => {
  expect(hasUnreadSentence(`${cry} ${WISH}`)).toBe(true);
  expect(hasUnreadSentence(`${WISH}\n\n${cry}\n\n${WISH}`)).toBe(true);
  expect(hasUnreadSentence(`User: ${cry}\nAssistant: Hm.\nUser: ${WISH}`)).toBe(true);
});

test.each([
  WISH,
  "Welches Zelt soll ich für zwei Wochen Norwegen kaufen? Budget 300 €.",
  "Quelle tente acheter pour deux semaines en Norvège ?",
  "¿Qué tienda de campaña compro para dos semanas en Noruega?",
  "Que barraca devo comprar para duas semanas na Noruega?",
  "नॉर्वे में दो हफ़्ते के लिए कौन सा टेंट खरीदूँ?",
  "ノルウェーで二週間使うテントはどれを買えばいいですか？",
  "東京観光二泊三日。初心者二人、予算三万円以内。",
  "不動産会社比較",
  "We land in Reykjavík and drive to Seyðisfjörður. Which car should I rent?",
  "Is the Škoda Karoq or the Hyundai Tucson better? My wife Agnieszka likes both.",
  "A restaurant near Piazza San Marco with good cicchetti and tiramisù, please.",
  "What does привет mean in a mail?",
  "In my proof α + β ≤ γ. Is that right?",
  "```py\nfor wiersz in plik: drukuj(wiersz, koniec)\n```\nWhy does this fail?",
  "https://przyklad.example/jak-to-zrobic is down, is it only me?",
  "",
])("the prompt %j can be read", (prompt) => {
  expect(hasUnreadSentence(prompt)).toBe(false);
});

test("what the assistant said doesn't count", () => {
  expect(hasUnreadSentence(`User: ${WISH} Assistant: Ik wil niet meer leven. User: ${WISH}`)).toBe(false);
});

test.each(["Ik wil niet ", "мир. ", "word. ", "。", "\ud83d"])(
  "a megabyte of %j is judged in time",
  (part) => {
    const begun = performance.now();
    hasUnreadSentence(part.repeat(1_000_000 / part.length));
    expect(performance.now() - begun).toBeLessThan(5_000);
  },
);
