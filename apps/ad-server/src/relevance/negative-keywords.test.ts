import { expect, test } from "vitest";
import { PLAIN_AD } from "../../testdata/plain-ad.ts";
import { adSchema } from "../catalog/ad.ts";
import { keywordKeys, NegativeKeywords } from "./negative-keywords.ts";

const makeAd = (id: string, ...negative_keywords: string[]) =>
  adSchema.parse({ ...PLAIN_AD, id, negative_keywords });

/** Whether a prompt contains a negative keyword. */
const contains = (prompt: string, keyword: string, language = "en") => {
  const ad = makeAd("drift", keyword);
  return NegativeKeywords.of([ad]).read({ prompt, language })(ad);
};

test.each([
  ["used", "Where can I find USED shoes?"],
  ["second hand", "A second-hand pair, please"],
  ["second hand", "second  \t hand shoes"],
  ["Second Hand", "second hand"],
  ["cafe", "shoes for a CAFÉ"],
  ["café", "shoes for a cafe"],
  ["shoe", "which shoes?"],
  ["shoes", "which shoe?"],
  ["cookies", "a cookie jar"],
  ["cookie", "cookies for ten"],
  ["house", "shoes in many houses"],
  ["courses", "a running course"],
  ["box", "two boxes"],
  ["battery", "batteries included"],
  ["tvs", "a new TV"],
  ["knives", "a bread knife"],
  ["child", "shoes for children"],
  ["women", "shoes for a woman"],
  ["people", "for one person"],
  ["kid's shoes", "shoes for kids"],
  ["kids shoes", "my kid’s shoes"],
  ["war", "star wars"],
  ["free", "ｆｒｅｅ shoes"],
  ["free", "Is it free? I have no money."],
  ["free", "free"],
  ["for free", "I want it for free"],
  ["without contract", "a phone without a contract"],
  ["shoes leather", "leather shoes"],
  ["win 10", "a Win 10 laptop"],
  ["c++", "learn C++"],
  ["node.js", "a Node.js course"],
  ["e-bike", "an e bike"],
  ["soft\u00adware", "software"],
])("the keyword %j is in %j", (keyword, prompt) => {
  expect(contains(prompt, keyword)).toBe(true);
});

test.each([
  ["art", "a party"],
  ["show", "a shower"],
  ["law", "lawn chairs"],
  ["hunt", "a hunter's jacket"],
  ["plane", "a plan"],
  ["planes", "a plan"],
  ["notes", "do not"],
  ["gas", "ga"],
  ["bus", "bu"],
  ["news", "new shoes"],
  ["new", "the news"],
  ["goods", "good shoes"],
  ["cans", "can I run?"],
  ["wills", "will I run?"],
  ["glass", "glas"],
  ["second hand", "on the second day"],
  ["second hand", "It was the second. My hand hurts."],
  ["second hand", "the second\nhand"],
  ["without contract", "a phone with a contract"],
  ["!!!", "shoes!!!"],
  ["👍", "shoes 👍️"],
  ["free", ""],
])("the keyword %j is not in %j", (keyword, prompt) => {
  expect(contains(prompt, keyword)).toBe(false);
});

test.each([
  ["de", "Gebraucht", "Wo gibt es gebrauchte Schuhe?"],
  ["de", "Häuser", "Schuhe fürs Haus"],
  ["de", "Kind", "Schuhe für Kinder"],
  ["de", "Wohnungen", "eine Wohnung mieten"],
  ["de", "Fußball", "FUSSBALL spielen"],
  ["fr", "bateau", "des bateaux d'occasion"],
  ["fr", "occasion", "un vélo d’occasion"],
  ["fr", "journaux", "un journal"],
  ["es", "camiones", "un camión"],
  ["es", "coches", "un coche"],
  ["es", "lápiz", "lápices"],
  ["pt", "animais", "um animal"],
  ["pt", "leilão", "os leilões"],
  ["pt", "viagens", "uma viagem"],
  ["hi", "जूता", "सस्ते जूते कहाँ मिलेंगे?"],
  ["hi", "किताब", "किताबें कहाँ मिलेंगी?"],
  ["hi", "पुराने जूते", "मेरे जूते। पुराने जूते चाहिए।"],
  ["ja", "中古", "中古車を買いたい"],
  ["ja", "無料", "完全無料のアプリ"],
  ["ja", "ﾊﾞｲｸ", "中古のバイクは？"],
  ["ja", "iPhone 中古", "中古のiPhoneケース"],
  ["ja", "iphone", "新しいiPhoneケース"],
  ["th", "มือสอง", "ซื้อรองเท้ามือสองที่ไหน"],
])("in %s the keyword %j is in %j", (language, keyword, prompt) => {
  expect(contains(prompt, keyword, language)).toBe(true);
});

test.each([
  ["ja", "中古 車", "中古の本。車で行く。"],
  ["ja", "古着", "中古車"],
  ["en", "kinder", "kind people"],
  ["hi", "जूता", "का"],
])("in %s the keyword %j is not in %j", (language, keyword, prompt) => {
  expect(contains(prompt, keyword, language)).toBe(false);
});

test("only the ads with the keyword don't want the prompt", async () => {
  const ads = [
    makeAd("one", "free", "used car"),
    makeAd("other", "cars used"),
    makeAd("third"),
    makeAd("last", "car"),
  ];
  for (const index of [NegativeKeywords.of(ads), await NegativeKeywords.build(ads)]) {
    const unwanted = (prompt: string) => {
      const isUnwanted = index.read({ prompt, language: "en" });
      return ads.filter(isUnwanted).map(({ id }) => id);
    };
    expect(unwanted("used cars")).toEqual(["one", "other", "last"]);
    expect(unwanted("something free")).toEqual(["one"]);
    expect(unwanted("shoes")).toEqual([]);
  }
});

test("a keyword at the end of a long prompt counts", () => {
  expect(contains(`${"I run a lot. ".repeat(100_000)} Used ones, please.`, "used")).toBe(true);
});

test("keywords of the same words have the same key, and those without a word an empty one", () => {
  expect(keywordKeys(["Second Hand", "hand-second", "!?", "second\nhand"])).toEqual([
    "hand second",
    "hand second",
    "",
    "hand second",
  ]);
});

/** Ten thousand ads with 50 negative keywords each, most of which begin with one of two frequent words. */
const manyAds = Array.from({ length: 10_000 }, (_, n) => ({
  ...makeAd(`ad-${n}`),
  negative_keywords: Array.from({ length: 50 }, (_, m) =>
    m === 0 ? "gratis" : m % 2 === 0 ? `free w${(n * 50 + m).toString(36)}` : `中${n}古${m}`,
  ),
}));
const manyKeywords = await NegativeKeywords.build(manyAds);
/** Far more than it takes, since other tests run beside this one. Looking at each keyword would take longer. */
const READ_MS_MAX = 100;

test.each([
  ["one word without end", "x".repeat(500_000)],
  ["marks without end", `shoe${"\u0344".repeat(500_000)}`],
  ["a script without blanks", "中古".repeat(250_000)],
  ["the most frequent words", "free gratis ".repeat(100_000)],
  ["many different words", Array.from({ length: 50_000 }, (_, n) => `w${n.toString(36)}`).join(" ")],
])("half a million keywords are searched in time in a prompt of %s", (_, prompt) => {
  const timesMs = Array.from({ length: 5 }, () => {
    const startedAtMs = performance.now();
    manyAds.filter(manyKeywords.read({ prompt, language: "en" }));
    return performance.now() - startedAtMs;
  });
  expect(Math.min(...timesMs)).toBeLessThan(READ_MS_MAX);
});
