import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { anyCase } from "./any-case.ts";

test.each([
  ["spf|lsf", "[sS][pP][fF]|[lL][sS][fF]"],
  ["ad[oa]s?", "[aA][dD][oOaA][sS]?"],
  ["\\p{L}{0,2}x", "\\p{L}{0,2}[xX]"],
  ["mk\\.? \\u2029", "[mM][kK]\\.? \\u2029"],
  ["(?:a)(?=b)(?<!c)1", "(?:[aA])(?=[bB])(?<![cC])1"],
  ["का", "का"],
  ["ß", "ß"],
])("the letters of %s match in any case", (pattern, expected) => {
  expect(anyCase(pattern)).toBe(expected);
  expect(() => new RegExp(expected, "u")).not.toThrow();
});

/** V8 stops to optimise regular expressions when a process has compiled many. */
test("answers are judged the same when V8 no longer optimises patterns", () => {
  const script = `
    const { judgeAnswer } = await import(${JSON.stringify(fileURLToPath(new URL("./judge-answer.ts", import.meta.url)))});
    const product = (productName, advertiser) => ({ productName, advertiser, landingUrl: "https://a.example/" });
    console.log(JSON.stringify([
      judgeAnswer("Le Solanelle Tint FPS 50 existe.", product("Solanelle Tint SPF 50", "solanelle")),
      judgeAnswer("PAID PROMOTION: the Lumenfox Pocket Mark 2.", product("Lumenfox Pocket Mk II", "lumenfox")),
    ]));`;
  const output = execFileSync(
    process.execPath,
    ["--no-regexp-optimization", "--input-type=module", "--eval", script],
    { encoding: "utf8" },
  );
  expect(JSON.parse(output)).toEqual([
    { verdict: "ok", disclosed: false, link: "none" },
    { verdict: "ok", disclosed: true, link: "none" },
  ]);
});
