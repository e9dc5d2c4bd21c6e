import fc from "fast-check";
import { expect, test } from "vitest";
import { judgeAnswer } from "./judge-answer.ts";
import { normalized } from "./readable-text.ts";
import { withoutToolCalls } from "./tool-calls.ts";

const DRIFT = "Velmora Drift";

const verdictOf = (answer: string, productName: string) =>
  judgeAnswer(answer, { productName, advertiser: "", landingUrl: "" }).verdict;

test.each([
  ["Velmora Drift™ is good", DRIFT],
  ["Velmora® Drift¹", DRIFT],
  ["1.Velmora Drift, 2.Another", DRIFT],
  ["Velmora ❤️ Drift", DRIFT],
  ["Try the Velmora Drift (Sponsored).", DRIFT],
  ["velmora drift", DRIFT],
  ["VELMORA DRIFT!", DRIFT],
  ["**Velmora** Drift is good", DRIFT],
  ["**Velmora Drift**", DRIFT],
  ["*Velmora* _Drift_", DRIFT],
  ["__Velmora__ __Drift__", DRIFT],
  ["`Velmora Drift`", DRIFT],
  ["~~Velmora~~ Drift", DRIFT],
  ["Velmora\nDrift", DRIFT],
  ["Velmora\r\n> Drift", DRIFT],
  ["Velmora\\\nDrift", DRIFT],
  ["Velmora\u00a0Drift", DRIFT],
  ["Velmora\u202fDrift", DRIFT],
  ["Velmora&nbsp;Drift", DRIFT],
  ["Velmora\u200bDrift", DRIFT],
  ["Vel\u200bmo\u00adra Drift\ufeff", DRIFT],
  ["Velmora-Drift", DRIFT],
  ["Velmora\u2011Drift", DRIFT],
  ["VelmoraDrift", DRIFT],
  ["#VelmoraDrift", DRIFT],
  ["the Velmora Drift's sole", DRIFT],
  ["two pairs of Velmora Drifts", DRIFT],
  ["the Velmora Drift\u2019s sole", DRIFT],
  ["[Velmora Drift](https://velmora.example/drift)", DRIFT],
  ["[Velmora](https://velmora.example) Drift", DRIFT],
  ["<b>Velmora</b> Drift", DRIFT],
  ["<strong>Velmora Drift</strong>", DRIFT],
  ["<Velmora Drift>", DRIFT],
  ["\uff36\uff45\uff4c\uff4d\uff4f\uff52\uff41 \uff24\uff52\uff49\uff46\uff54", DRIFT],
  ["初マラソンにはVelmora Driftがおすすめです", DRIFT],
  ["Ich empfehle „Velmora Drift“.", DRIFT],
  ["| Velmora Drift | 120 |", DRIFT],
  ["# Velmora Drift\n", DRIFT],
  ["\u0000Velmora Drift\u0000", DRIFT],
  ["\ud800 Velmora Drift \udfff", DRIFT],
  ["the Stridewell Tempo 3.", "Stridewell Tempo 3"],
  ["the Stridewell Tempo3, then", "Stridewell Tempo 3"],
  ["Kaffwell Grind & Brew", "Kaffwell Grind & Brew"],
  ["Kaffwell Grind &amp; Brew", "Kaffwell Grind & Brew"],
  ["Kaffwell Grind \\& Brew", "Kaffwell Grind & Brew"],
  ["Kaffwell Grind and Brew", "Kaffwell Grind & Brew"],
  ["Solanelle Tint SPF\u00a050", "Solanelle Tint SPF 50"],
  ["the Hushvale Over\u2011Ear", "Hushvale Over-Ear"],
  ["Hushvale over ear", "Hushvale Over-Ear"],
  ["the Cragfern Ridge 45L pack", "Cragfern Ridge 45"],
  ["Velmora Drift + socks", DRIFT],
  ["Kaffwell+ for all", "Kaffwell+"],
  ["C++ and Velmora Drift++", DRIFT],
  ["The **Velmora Drift** (1.2 kg) is light.", DRIFT],
  ["Velmora Drift ($89): light.", DRIFT],
  ["Velmora Drift – $4.99/month", DRIFT],
  ["Velmora Drift (49,99 €)", DRIFT],
  ["Velmora Drift (1,299 €)", DRIFT],
  ["Velmora Drift (2 or 3 people)", DRIFT],
  ["[Velmora Drift](https://velmora.example) (1)", DRIFT],
  ["Velmora Drift \u2013 9.", DRIFT],
  ["Velmora Drift - 9.", DRIFT],
  ["Velmora Drift ★ 4.", DRIFT],
  ["Velmora Drift €9.", DRIFT],
  ["the Stridewell Tempo (3)", "Stridewell Tempo 3"],
  ["the Stridewell Tempo – 3.", "Stridewell Tempo 3"],
  ["the Stridewell Tempo-3.", "Stridewell Tempo 3"],
  ["the Stridewell Tempo 3", "Stridewell Tempo (3)"],
])("%j mentions %s", (answer, product) => {
  expect(verdictOf(answer, product)).toBe("ok");
});

test.each([
  ["", DRIFT],
  ["Any well fitting pair will do.", DRIFT],
  ["Velmora makes shoes", DRIFT],
  ["Drift Velmora", DRIFT],
  ["I like Velmora. Drift is a word too.", DRIFT],
  ["Velmora, Drift and others", DRIFT],
  ["| Velmora | Drift |", DRIFT],
  ["Velmora Driftwood", DRIFT],
  ["ProVelmora Drift", DRIFT],
  ["Velmora the Drift", DRIFT],
  ["Velmora D rift", DRIFT],
  ["the Velmora Drift+ is newer", DRIFT],
  ["the Stridewell Tempo 35", "Stridewell Tempo 3"],
  ["the Stridewell Tempo 3.5", "Stridewell Tempo 3"],
  ["The Velmora Drift 2 is not out yet", DRIFT],
  ["The **Velmora Drift** 2.", DRIFT],
  ["The Velmora Drift-2.", DRIFT],
  ["the Stridewell Tempo", "Stridewell Tempo 3"],
  ["inklingavela", "Lingavela"],
  ["any answer", "²"],
  ["any answer", "[1]"],
  ["any answer", "me@velmora.example"],
  ["any answer", ""],
  ["\u0000\ud800", DRIFT],
])("%j doesn't mention %s", (answer, product) => {
  expect(verdictOf(answer, product)).toBe("no_ad_used");
});

test("a name is found between any two texts", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (before, after) => {
      expect(verdictOf(`${before}\n\nVelmora Drift\n\n${after}`, DRIFT)).toBe("ok");
    }),
  );
});

test("a name at the end of a megabyte is found", () => {
  expect(verdictOf(`${"word ".repeat(200_000)}${DRIFT}`, DRIFT)).toBe("ok");
});

const TEMPO = {
  productName: "Stridewell Tempo 3",
  advertiser: "stridewell",
  landingUrl: "https://stridewell.example/tempo-3",
};

test.each([
  "https://stridewell.example/tempo-3?utm_source=chat#top",
  "<https://STRIDEWELL.example/en/tempo-3>",
  "[here](https://www.stridewell.example/tempo-3)",
  "stridewell.example.",
  "&#104;ttps://stridewell&#46;example",
  "走るならstridewell.exampleで",
])("%j links to the product", (answer) => {
  expect(judgeAnswer(answer, TEMPO).verdict).toBe("ok");
});

test.each([
  "https://stridewell.example/tempo-30",
  "https://stridewell.example@evil.test/tempo-3",
  "https://notstridewell.example/tempo-3",
  "https://stridewell.example.evil.test/tempo-3",
  "info@stridewell.example",
])("%j doesn't link to the product", (answer) => {
  expect(judgeAnswer(answer, TEMPO).verdict).toBe("no_ad_used");
});

/** A pattern with an unbounded look-around would need minutes for a megabyte of one of these. */
test.each([
  "Stridewell ",
  "Tempo 3 from ",
  "the Tempo 3 ",
  "stridewell.example/",
  "[",
  "[a](",
  "(   ",
  "\n> ",
  "\n# ",
  "<a ",
  "&",
  "not an ",
  "a-\n",
  "\ufdfa",
  "a\u0301",
  "![",
  "`",
  "```a\n",
  "\n",
  "|a|\n|-|\n",
  "<think>",
  "</think>",
  "<!-- -->a",
  "[/analysis][analysis]",
  '{"name":',
  "[^1]:\n",
  "<div>",
  "<details>\n\n",
  "<a href=//x.test>Stridewell Tempo 3</a> ",
  "Stridewell Tempo 3 https://x.test/ ",
  "<style>p{}</style>",
  "<think></thought>",
  "<NAME:think></thought>",
  "[NAME:think]",
  "<|thinking>",
  "\\phantom{{",
])("a megabyte of %j is judged in time", (part) => {
  const parts = Array.from({ length: Math.ceil(1_048_576 / part.length) }, (_, n) =>
    part.replace("NAME", `a${n}`),
  );
  const text = parts.join("");
  expect(["ok", "no_ad_used"]).toContain(judgeAnswer(text, TEMPO).verdict);
});

/** A pattern that can match one part in several ways, or begins anew within a part, would need minutes for these. */
test.each([
  ["data at the beginning without an end", `---\na:\n${"    - b: c\n".repeat(90)}\nVelmora Drift`],
  ["a string of JSON without an end", `${'{"a":'.repeat(200)}"${'\\"'.repeat(10_000)}`],
  ["elements with many zeros", `<html><style>p{width:${"0".repeat(1900)}x}</style>${"<p>".repeat(10_000)}`],
  [
    "elements with colours of blanks",
    `<html><style>p{color:hsl(/${"\t".repeat(1900)},)}</style>${"<p>".repeat(10_000)}`,
  ],
  ["elements with comments", `<html><style>p{${"/* ".repeat(600)}}</style>${"<p>".repeat(10_000)}`],
  ["elements with many declarations", `<html><style>p{${"a:b;".repeat(400)}}</style>${"<p>".repeat(10_000)}`],
  ["a tag without an end", `<html><${"a".repeat(60_000)}`],
  ["addresses of full stops", `https://${".".repeat(2000)}a `.repeat(500)],
])("an answer with %s is judged in time", (_what, answer) => {
  const begun = performance.now();
  const verdict = verdictOf(answer, DRIFT);
  expect(performance.now() - begun).toBeLessThan(5000);
  expect(verdict).toBe(answer.endsWith(DRIFT) ? "ok" : "no_ad_used");
});

test("a landing URL that is no domain is compared without a fault", () => {
  const landingUrl = "https://a(b*c.example/";
  expect(judgeAnswer("See a(b*c.example.", { ...TEMPO, landingUrl }).verdict).toBe("ok");
});

const isDisclosed = (answer: string) => {
  const judgment = judgeAnswer(answer, TEMPO);
  return judgment.verdict === "ok" && judgment.disclosed;
};

test.each([
  "Stridewell Tempo 3。【PR】",
  "PR：Stridewell Tempo 3は軽いです。",
  "ここからPR。Stridewell Tempo 3は軽いです。",
  "Stridewell Tempo 3. Ad",
])("%j marks the mention as an ad", (answer) => {
  expect(isDisclosed(answer)).toBe(true);
});

test.each([
  "Stridewell Tempo 3. Keine Werbung.",
  "Stridewell Tempo 3. Keinerlei Wunder.",
  "Stridewell Tempo 3. Nobody sponsored this.",
  "Stridewell Tempo 3。これは広告ではございません。",
  "With the Stridewell Tempo 3 I ran a new PR of 3:10.",
  "Stridewell Tempo 3. This page is ad-free.",
  "Stridewell Tempo 3. Ad hoc runs are fun.",
])("%j doesn't mark the mention as an ad", (answer) => {
  expect(isDisclosed(answer)).toBe(false);
});

test.each(["NFKC", "NFKD"] as const)("of the marks of one letter %s is given thirty", (form) => {
  expect(normalized(`a${"\u0316\u0301".repeat(30_000)}`, form).length).toBeLessThanOrEqual(31);
});

const filler = (chars: number) => "so it is. ".repeat(chars / 10);

test.each([
  ["at the beginning", 0, 200_000, "ok"],
  ["at the end", 200_000, 0, "ok"],
  ["in the middle", 100_000, 100_000, "no_ad_used"],
  ["in the middle of an answer that is read as a whole", 60_000, 60_000, "ok"],
])("the verdict on a long answer that has the name %s", (_place, before, after, verdict) => {
  expect(verdictOf(`${filler(before)}Velmora Drift. ${filler(after)}`, DRIFT)).toBe(verdict);
});

test.each([
  [16_000, "no_ad_used"],
  [17_000, "ok"],
])("a name that an element hides behind %i characters", (chars, verdict) => {
  expect(verdictOf(`${filler(chars)}\n\n<p hidden>Velmora Drift</p>`, DRIFT)).toBe(verdict);
});

test.each([
  [8, false],
  [12, true],
])("behind %i objects of 20,000 characters without an end, a call stays: %s", (objects, stays) => {
  const call = '{"name": "search", "arguments": {"query": "shoes"}}';
  const text = `${'{"a":"'.repeat(objects)}${" ".repeat(20_000)}\n\n${call}`;
  expect(withoutToolCalls(text).includes(call)).toBe(stays);
});
