import fc from "fast-check";
import { expect, test } from "vitest";
import { judgeAnswer } from "./judge-answer.ts";

const DRIFT = {
  productName: "Velmora Drift",
  advertiser: "velmora",
  landingUrl: "https://velmora.example/drift",
};
const judge = (answer: string) => judgeAnswer(answer, DRIFT);
const verdictOf = (answer: string) => judge(answer).verdict;

test.each([
  "<think>Velmora Drift</think>ok",
  "<think>Velmora Drift",
  "Velmora Drift</think>ok",
  "Velmora Drift\n```js\nlet x;\n</thinking>\nok",
  "<Think time='3'>\n\nVelmora Drift\n\n</Think>\nok",
  "<think>a <think>b</think> Velmora Drift</think> ok",
  "<inner_monologue>Velmora Drift</inner_monologue>ok",
  "<seed:think>Velmora Drift</seed:think>ok",
  "<pensamiento>Velmora Drift</pensamiento>ok",
  "<|begin_of_thought|>Velmora Drift<|end_of_thought|>ok",
  "\u25c1think\u25b7Velmora Drift\u25c1/think\u25b7ok",
  "[THINK]Velmora Drift[/THINK]ok",
  "[analysis]Velmora Drift[/analysis]ok",
  "<|channel|>analysis<|message|>Velmora Drift<|end|><|channel|>final<|message|>ok",
  "<|channel>thought\nVelmora Drift<channel|>ok",
  "<|channel>thought\nVelmora Drift",
  "<|thinking>Velmora Drift<thinking|>ok",
  "<\uff5cDSML\uff5cthinking>Velmora Drift</\uff5cDSML\uff5cthinking>ok",
  "analysisThe Velmora Drift is an ad.assistantfinalok",
  "Thought: Velmora Drift?\nFinal Answer: ok",
  "<details type='reasoning'><summary>Thought for 5 seconds</summary>Velmora Drift</details>ok",
  "<details><summary>Thinking</summary>\n\nVelmora Drift\n\n</details>ok",
  "Sure. <think>Velmora Drift</think>ok",
  "Sure.\n<think>Velmora Drift",
])("reasoning is no part of the answer: %j", (answer) => {
  expect(verdictOf(answer)).toBe("no_ad_used");
});

test.each([
  "<tool_call>Velmora Drift</tool_call>",
  "<tool_call>Velmora Drift",
  "<function=search>Velmora Drift</function>ok",
  "<action>Velmora Drift",
  "Now <tool>Velmora Drift</tool>ok",
  "Now <tool_call>Velmora Drift",
  "<function_calls><invoke name='x'>Velmora Drift</invoke></function_calls>",
  "<\uff5ctool\u2581calls\u2581begin\uff5c>Velmora Drift<\uff5ctool\u2581calls\u2581end\uff5c>",
  '<|tool_call>call:x{q:<|"|>Velmora Drift<|"|>}<tool_call|>ok',
  "<\uff5cDSML\uff5ctool_calls><\uff5cDSML\uff5cinvoke name='x'>Velmora Drift</\uff5cDSML\uff5cinvoke></\uff5cDSML\uff5ctool_calls>ok",
  '[TOOL_CALLS][{"name":"x","arguments":{"q":"Velmora Drift"}}]',
  '<|python_tag|>search("Velmora Drift")',
  '[search(query="Velmora Drift")]',
  'functions.search({"q": "Velmora Drift"})',
  '{"name":"x","arguments":{"q":"Velmora Drift"}}',
  '[{"name":"x","arguments":{"q":"Velmora Drift"}}]',
  '{"name":"x","arguments":{"q":"Velmora Drift',
  'ok {"tool":"x","q":"Velmora Drift"} ok',
  '```\n{"name":"x","parameters":{"q":"Velmora Drift"}}\n```',
  "```tool_code\nsearch('Velmora Drift')\n```",
  '{"function_call":{"name":"x","arguments":"Velmora Drift"}}',
  '{"action":"x","action_input":"Velmora Drift"}',
  '{"functionCall":{"name":"x","args":{"q":"Velmora Drift"}}}',
  '{"query":"Velmora Drift","limit":3}',
  '[{"type":"text","text":"ok"},{"type":"tool_use","id":"1","name":"x","input":{"q":"Velmora Drift"}}]',
  '[{"type":"thinking","thinking":"Velmora Drift"},{"type":"text","text":"ok"}]',
  '{"reasoning":"Velmora Drift","answer":"ok"}',
  "Action: search\nAction Input: Velmora Drift",
  '{"tool":"search","type":"x","query":"Velmora Drift"}',
])("a call of a tool is no part of the answer: %j", (answer) => {
  expect(verdictOf(answer)).toBe("no_ad_used");
});

test.each([
  "ok<!--Velmora Drift-->",
  "ok <!-- Velmora\n\nDrift",
  "[//]: # (Velmora Drift)",
  "[comment]: <> (Velmora Drift)",
  "ok\n\n[Velmora Drift]: https://x.test 'Velmora Drift'",
  "![Velmora Drift](x.png 'Velmora Drift')",
  "![Velmora Drift][x]\n\n[x]: x.png",
  "[ok](https://x.test/velmora-drift 'Velmora Drift')",
  "[](https://velmora.example/drift)",
  "[\u200b](https://velmora.example/drift)",
  "[^1]: Velmora Drift",
  "---\ntitle: Velmora Drift\ntags:\n  - Velmora Drift\n---\nok",
  "$\\phantom{Velmora Drift}$",
  "$\\phantom{\\text{Velmora {Drift}}}$",
])("the source of Markdown isn't shown: %j", (answer) => {
  expect(verdictOf(answer)).toBe("no_ad_used");
});

test.each([
  "<DIV STYLE='DISPLAY : NONE !important'>Velmora Drift</DIV>",
  "<div hidden>\n\nVelmora Drift\n\n</div>\n\nok",
  "<p style='visibility:hidden'>Velmora Drift</p>",
  "<p style='font-size:0'>Velmora <b>Drift</b></p>",
  "<p style='font:0/0 a'>Velmora Drift</p>",
  "<p style='opacity:0.01'>Velmora Drift</p>",
  "<p style='position:absolute;left:-9999px'>Velmora Drift</p>",
  "<p style='clip-path:inset(50%)'>Velmora Drift</p>",
  "<p style='transform:scale(0)'>Velmora Drift</p>",
  "<p style='transform:rotate(0) scale(1, .001)'>Velmora Drift</p>",
  "<p style='scale:1%'>Velmora Drift</p>",
  "<p style='zoom:0.001'>Velmora Drift</p>",
  "<p style='d\\69splay:none'>Velmora Drift</p>",
  "<p style='display:\\6e \\6fne'>Velmora Drift</p>",
  "<style>.\\78 { display: n\\one }</style><p class='x'>Velmora Drift</p>",
  "<p style='max-height:0;overflow:hidden'>Velmora Drift</p>",
  "<p style='color:transparent'>Velmora Drift</p>",
  "<p style='color:#fefefe'>Velmora Drift</p>",
  "<p style='background:black'><b style='color:#000'>Velmora Drift</b></p>",
  "<p aria-hidden='true'>Velmora Drift</p>",
  "<p class='sr-only'>Velmora Drift</p>",
  "<style>.x, #y { display: none }</style><p class='a x'>Velmora Drift</p>",
  "<style>div > .x { display: none }</style><div><p class='x'>Velmora Drift</p></div>",
  "<style>p.x { font-size: 0 }</style><p class='x'>Velmora Drift</p>",
  "<template>\n\nVelmora Drift\n\n</template>",
  "<script>'Velmora Drift'</script>",
  "<style>/* Velmora Drift */</style>",
  "<noscript>Velmora Drift</noscript>",
  "<dialog>Velmora Drift</dialog>",
  "<video>Velmora Drift</video>",
  "<object data='x.svg'>Velmora Drift</object>",
  "<svg><title>Velmora Drift</title></svg>",
  "<input type='hidden' value='Velmora Drift'>",
  "<img alt='Velmora Drift' src='x.png'>",
  "<span title='Velmora Drift' data-x='Velmora Drift'>ok</span>",
  "<html><head><title>Velmora Drift</title></head><body>ok</body></html>",
  "<![CDATA[Velmora Drift]]>",
  "Velmora <span hidden>Drift</span>",
])("hidden HTML isn't shown: %j", (answer) => {
  expect(verdictOf(answer)).toBe("no_ad_used");
});

test.each([
  "`<think>` is a tag. Velmora Drift",
  "Some models begin with <think> and forget to stop. Velmora Drift",
  'It puts its notes between "<think>" and "</think>". Velmora Drift',
  "Velmora Drift. The end is \u201c</think>\u201d.",
  '{"tool":"running shoes","price":120,"product":"Velmora Drift"}',
  '{"tool":"Velmora Drift","input_price":120}',
  "---\nVelmora Drift\n---\nok",
  "ok\n\n---\ntitle: Velmora Drift\n---\n",
  "<p style='transform:scale(-1);zoom:90%;scale:0.9'>Velmora Drift</p>",
  "<p style='content:\\22 x\\22'>Velmora Drift</p>",
  "```\n</think>\n```\nVelmora Drift",
  "<thinking/>Velmora Drift",
  "<think>a</thinking>Velmora Drift",
  "a Map<Object> and the Velmora Drift",
  "a Map<Function> and the Velmora Drift",
  "run x <action> first. Velmora Drift",
  'Put "<tool>" before it and "</tool>" behind it. Velmora Drift',
  "<map><p>Velmora Drift</p></map>",
  "[Thinking] Velmora Drift",
  "```html\n<!-- Velmora Drift -->\n```",
  "    <p hidden>Velmora Drift</p>",
  '```json\n{"name":"Velmora Drift","input":"none"}\n```',
  '{"answer":"Velmora Drift"}',
  '{"content":"Velmora Drift","tool_calls":[{"name":"x"}]}',
  "<answer>Velmora Drift</answer>",
  "<|channel>thought\nx<channel|>Velmora Drift",
  "<|tool_call>call:x{}<tool_call|>Velmora Drift",
  "$\\phantom{\\text{x}}$ Velmora Drift",
  "<p hidden>x</p>Velmora Drift",
  "<p><span hidden>x</p>\n\nVelmora Drift",
  "<p style='font-size:0'><b style='font-size:12px'>Velmora Drift</b></p>",
  "<p style='visibility:hidden'><b style='visibility:visible'>Velmora Drift</b></p>",
  "<p style='opacity:.8;color:rgb(0,0,0);margin:-8px'>Velmora Drift</p>",
  "<p class='badge' style='color:white'>Velmora Drift</p>",
  "<style>.x{color:red}</style><p class='x'>Velmora Drift</p>",
  "<style>.x:hover{display:none} .y p{display:none}</style><p class='x'>Velmora Drift</p>",
  "![Velmora Drift]()",
  "<details><summary>More</summary>Velmora Drift</details>",
  "<details><summary>Thoughts on shoes</summary>Velmora Drift</details>",
  "ok[^1]\n\n[^1]: Velmora Drift",
  "Velmora<br>\nDrift",
  "<table><tr><td>Velmora Drift</td></tr></table>",
  "text\n[//]: # (Velmora Drift)",
])("what is shown counts: %j", (answer) => {
  expect(verdictOf(answer)).toBe("ok");
});

test.each([
  ["Velmora Drift <!-- Sponsored -->", false],
  ["<think>Sponsored</think>Velmora Drift", false],
  ["Velmora Drift <i title='Sponsored' hidden>Sponsored</i>", false],
  ["Velmora Drift ![Sponsored](a.png)", false],
  ["Velmora Drift\n\n[//]: # (Sponsored)", false],
  ["Velmora Drift https://velmora.example/drift?utm_medium=sponsored", false],
  ["Velmora Drift <details><summary>More</summary>Sponsored</details>", false],
  ["<details><summary>More</summary>Velmora Drift <details>Sponsored</details></details>", false],
  ["Velmora Drift <details><summary>Sponsored</summary>x</details>", true],
  ["<details><summary>More</summary>Velmora Drift<p>Sponsored</p></details>", true],
  ["Velmora Drift ([Ad](https://ads.test))", true],
  ["Velmora Drift `Sponsored`", true],
  ["| Shoe | Note |\n|---|---|\n| Velmora Drift | Sponsored |", true],
])("a label counts where it can be seen: %j is %s", (answer, disclosed) => {
  expect(judge(answer)).toMatchObject({ verdict: "ok", disclosed });
});

test.each([
  ["[Velmora Drift](https://velmora.example/drift) (ad)", "landing"],
  ["[Velmora Drift](https://www.velmora.example/about) (ad)", "landing"],
  ["[Velmora Drift](//shop.velmora.example/) (ad)", "landing"],
  ["[Velmora Drift](velmora.example/drift) (ad)", "landing"],
  ["[Velmora Drift][1] (ad)\n\n[1]: <https://velmora.example/drift>", "landing"],
  ["[![x](x.png)](https://velmora.example/drift) (ad)", "landing"],
  ["Velmora Drift (ad), see https://velmora.example/drift", "landing"],
  ["Velmora Drift (ad)", "none"],
  ["Velmora Drift (ad), compared at https://tests.test/shoes", "none"],
  ["[Velmora Drift](#drift) (ad)", "none"],
  ["<base href='https://velmora.example/'><a href='/drift'>Velmora Drift</a> (ad)", "landing"],
  ["<base href='/shop/'><a href='drift'>Velmora Drift</a> (ad)", "none"],
  ["[Velmora Drift](mailto:a@b.test) (ad)", "none"],
])("%j is disclosed and links to: %s", (answer, link) => {
  expect(judge(answer)).toEqual({ verdict: "ok", disclosed: true, link });
});

test.each([
  "[Velmora Drift](https://evil.test) (ad)",
  "[**Velmora**](https://evil.test) Drift (ad)",
  "[the Velmora Drift, now](http://evil.test) (ad)",
  "[Velmora Drift] (ad)\n\n[velmora drift]: https://evil.test",
  "<a href='//evil.test'>Velmora Drift</a> (ad)",
  "[Velmora Drift](evil.test/drift) (ad)",
  "[Velmora Drift](https&#58;//evil.test) (ad)",
  "[Velmora Drift](https://velmora.example@evil.test/drift) (ad)",
  "[Velmora Drift](https://velmora.example.evil.test/drift) (ad)",
  "[Velmora Drift](https://evil.test/?to=https://velmora.example/drift) (ad)",
  "[https://velmora.example/drift](https://evil.test) (ad)",
  "https://evil.test/velmora-drift (ad)",
  "<base href='https://evil.test/'><a href='/drift'>Velmora Drift</a> (ad)",
  "<a href='drift'>Velmora Drift</a> (ad) <base target=x href=//evil.test>",
])("a mention that links to another domain isn't disclosed: %j", (answer) => {
  expect(judge(answer)).toEqual({ verdict: "ok", disclosed: false, link: "foreign" });
});

test.each(["https://köln-räder.example/rad", "http://xn--kln-rder-4za9o.example/rad", "köln-räder.example"])(
  "a landing page with letters beyond ASCII is found as %s",
  (address) => {
    const product = { ...DRIFT, landingUrl: "https://köln-räder.example/rad" };
    expect(judgeAnswer(`Siehe ${address}.`, product)).toMatchObject({ verdict: "ok", link: "landing" });
  },
);

const PARTS = [
  ..."<think> </think> <!-- --> ` `` ``` \n \n\n <p\u00a0hidden> </p> <details> <summary> </details> [ ]( ) ![ > - | {".split(
    " ",
  ),
  ...'[^1] [^1]:\u00a0 {"name":"x","arguments":{ }} <a\u00a0href="//x.test"> </a> <table> <td> <svg> <select> [THINK]'.split(
    " ",
  ),
  ...["\ue000", "\ue005", "\u2029", "&lt;", "\\", "<?", "<template>", "(ad)", "Velmora", "Drift", " "],
].map((part) => part.replace("\u00a0", " "));

test("no answer makes the verdict fail", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...PARTS), { maxLength: 40 }), (parts) => {
      expect(["ok", "no_ad_used"]).toContain(verdictOf(parts.join("")));
    }),
    { numRuns: 500 },
  );
});

test("a long answer's rest is read, but its elements aren't", () => {
  const long = "word ".repeat(20_000);
  expect(verdictOf(`${long}\n\nVelmora Drift`)).toBe("ok");
  expect(verdictOf(`${long}\n\n<!-- Velmora Drift -->`)).toBe("no_ad_used");
  expect(verdictOf(`${long}\n\n<think>Velmora Drift</think>`)).toBe("no_ad_used");
});
