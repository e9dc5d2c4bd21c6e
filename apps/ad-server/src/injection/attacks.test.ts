/** The attack set: no prompt and no creative breaks out of its section in any format. */
import { readFileSync } from "node:fs";
import { WRAPPING_TYPES } from "@adrelay/contract";
import { expect, test } from "vitest";
import { z } from "zod";
import { parseCatalog } from "../catalog/load-catalog.ts";
import { type WrappingType, wrapPrompt } from "./wrap-prompt.ts";

const GUESSED = "00112233445566778899aabbccddeeff";
const FRESH = "fedcba98765432100123456789abcdef";

const attackSchema = z.discriminatedUnion("side", [
  z.strictObject({ id: z.string(), side: z.literal("prompt"), kind: z.string(), text: z.string() }),
  z.strictObject({
    id: z.string(),
    side: z.literal("creative"),
    kind: z.string(),
    field: z.enum(["product_name", "advertiser", "description", "keyword", "landing_url"]),
    text: z.string(),
  }),
]);

const linesOf = (file: string) =>
  readFileSync(new URL(`../../testdata/${file}`, import.meta.url), "utf8")
    .trim()
    .split("\n");
const attacks = linesOf("attacks.jsonl").map((line) => attackSchema.parse(JSON.parse(line)));
const innocents = linesOf("innocent-creatives.jsonl").map((line) =>
  z.strictObject({ id: z.string(), text: z.string() }).parse(JSON.parse(line)),
);
const onPrompts = attacks.flatMap((attack) => (attack.side === "prompt" ? [attack] : []));
const onCreatives = attacks.flatMap((attack) => (attack.side === "creative" ? [attack] : []));

const AD = {
  id: "stridewell-tempo",
  product_name: "Stridewell Tempo 3",
  advertiser: "stridewell",
  category: "running-shoes",
  description: "A lightweight shoe.",
  keywords: ["running shoes"],
  landing_url: "https://stridewell.example/tempo-3",
  bid_cpm_micros: 1,
  budget_micros: 1,
};

/** Fills in the nonce that is drawn first, as if the attacker had guessed it. */
function guessing(text: string): string {
  const styled = (zero: number, a: number) =>
    [...GUESSED].map((digit) =>
      String.fromCodePoint(/\d/.test(digit) ? zero + Number(digit) : a + digit.charCodeAt(0) - 97),
    );
  return text
    .replaceAll("{{NONCE}}", GUESSED)
    .replaceAll("{{NONCE_ZW}}", [...GUESSED].join("\u200b"))
    .replaceAll("{{NONCE_FW}}", styled(0xff10, 0xff41).join(""))
    .replaceAll("{{NONCE_BOLD}}", styled(0x1d7ce, 0x1d41a).join(""));
}

function drawer() {
  const nonces = [GUESSED, FRESH];
  return () => nonces.shift() ?? "exhausted";
}

interface Parsed {
  readonly facts: Readonly<Record<string, string>>;
  readonly instructions: readonly string[];
  readonly prompt: string;
  readonly nonce: string;
}

const SHAPES: Readonly<Record<WrappingType, (nonce: string) => readonly [string, string, string, string]>> = {
  xml: (nonce) => [
    `<sponsored_product_${nonce}>\n`,
    `\n</sponsored_product_${nonce}>\n<instructions_${nonce}>\n`,
    `\n</instructions_${nonce}>\n<user_message_${nonce}>\n`,
    `\n</user_message_${nonce}>`,
  ],
  plain: (nonce) => [
    `=== SPONSORED PRODUCT ${nonce} ===\n`,
    `\n=== INSTRUCTIONS ${nonce} ===\n`,
    `\n=== USER MESSAGE ${nonce} ===\n`,
    `\n=== END OF USER MESSAGE ${nonce} ===`,
  ],
  markdown: (nonce) => [
    `## Sponsored product ${nonce}\n\n`,
    `\n\n## Instructions ${nonce}\n\n`,
    `\n\n## User message ${nonce}\n\n`,
    `\n\n## End of user message ${nonce}`,
  ],
};

/** Parses a wrapped prompt by the nonce of its first line. Every delimiter must occur once, in its place. */
function parseWrapped(text: string, type: WrappingType): Parsed {
  const nonce = /[0-9a-f]{32}/.exec(text.split("\n", 1)[0] ?? "")?.[0] ?? "none";
  const marks = SHAPES[type](nonce);
  for (const mark of marks) {
    expect(text.split(mark)).toHaveLength(2);
  }
  const [open, afterFacts, afterInstructions, end] = marks;
  expect(text.startsWith(open)).toBe(true);
  expect(text.endsWith(end)).toBe(true);
  const [facts = "", rest = ""] = text.slice(open.length, -end.length).split(afterFacts);
  const [instructions = "", prompt = ""] = rest.split(afterInstructions);
  return {
    nonce,
    facts: Object.fromEntries(
      unfence(facts, type)
        .split("\n")
        .map((line) => factOf(line, type)),
    ),
    instructions: instructions.split("\n"),
    prompt: unfence(prompt, type),
  };
}

/**
 * In Markdown: the content of a fence, according to CommonMark. The first line that closes the fence must be the last
 * line.
 */
function unfence(section: string, type: WrappingType): string {
  if (type !== "markdown") {
    return section;
  }
  const fence = /^(`{3,})text\n/.exec(section)?.[1] ?? "none";
  const body = section.slice(fence.length + "text\n".length);
  const closing = new RegExp(
    `(?:^|[\\n\\r\\u2028\\u2029\\u0085\\f\\v])[ \\t]*${fence}\`*[ \\t]*(?=$|[\\n\\r\\u2028\\u2029])`,
    "g",
  );
  const closings = [...body.matchAll(closing)];
  expect(closings).toHaveLength(1);
  expect(body.endsWith(`\n${fence}`)).toBe(true);
  return body.slice(0, -fence.length - 1);
}

function factOf(line: string, type: WrappingType): [string, string] {
  if (type !== "xml") {
    const [, label = "", text = ""] = /^([a-z_]+): (.*)$/su.exec(line) ?? [];
    return [label, text];
  }
  const [, label = "", text = ""] = /^ {2}<([a-z_]+)>([^<>]*)<\/\1>$/u.exec(line) ?? [];
  return [label, text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&")];
}

/** Counts a nonce in any case, width or style, and with other characters in between. */
function countOf(nonce: string, text: string): number {
  return (
    text
      .normalize("NFKC")
      .toLowerCase()
      .replace(/[^a-z\d]+/g, "")
      .split(nonce).length - 1
  );
}
const NONCES = { xml: 7, plain: 5, markdown: 5 } as const;
const LABELS = ["product", "advertiser", "description", "landing_url"];

const clean = (text: string) =>
  text.replace(/(?:[\s\p{Cc}]|(?!\u200c|\u200d|\ufe0e|\ufe0f)[\p{Cf}\p{DI}])+/gu, " ").trim();

test("the attack set has attacks by prompts and by creatives", () => {
  expect(onPrompts.length).toBeGreaterThanOrEqual(40);
  expect(onCreatives.length).toBeGreaterThanOrEqual(40);
});

test.each(WRAPPING_TYPES)("in %s no prompt of the attack set breaks out", (type) => {
  for (const { id, text } of onPrompts) {
    const prompt = guessing(text);
    const wrapped = wrapPrompt({ prompt, ad: AD, type }, drawer());
    const parsed = parseWrapped(wrapped, type);
    expect(parsed.prompt, id).toBe(prompt);
    expect(Object.entries(parsed.facts), id).toEqual([
      ["product", AD.product_name],
      ["advertiser", AD.advertiser],
      ["description", AD.description],
      ["landing_url", AD.landing_url],
    ]);
    expect(parsed.instructions.length, id).toBe(6);
    expect(countOf(parsed.nonce, wrapped), id).toBe(NONCES[type]);
  }
});

test.each(WRAPPING_TYPES)(
  "in %s no creative of the attack set breaks out, even without screening",
  (type) => {
    for (const { id, field, text } of onCreatives) {
      const ad = { ...AD, ...(field === "keyword" ? {} : { [field]: guessing(text) }) };
      const wrapped = wrapPrompt({ prompt: "shoes?", ad, type }, drawer());
      const parsed = parseWrapped(wrapped, type);
      expect(Object.keys(parsed.facts), id).toEqual(LABELS);
      expect(parsed.facts["description"], id).toBe(clean(ad.description));
      expect(parsed.facts["product"], id).toBe(clean(ad.product_name));
      expect(parsed.facts["advertiser"], id).toBe(clean(ad.advertiser));
      expect(parsed.facts["landing_url"], id).toBe(clean(ad.landing_url));
      expect(parsed.prompt, id).toBe("shoes?");
      expect(countOf(parsed.nonce, wrapped), id).toBe(NONCES[type]);
    }
  },
);

/** Instructions in free words that the screening doesn't know. They still can't leave their section. */
const KNOWN_TO_PASS = [134, 140, 141, 142, 143, 145, 147, 157, 159].map((n) => `creative-${n}`);

test("the screening refuses every creative of the attack set, except the known ones", () => {
  const passed = onCreatives.filter(({ field, text }) => {
    const change =
      field === "keyword" ? { keywords: ["shoes", guessing(text)] } : { [field]: guessing(text) };
    const parsed = parseCatalog([{ ...AD, ...change }]);
    const place = field === "keyword" ? "0.keywords.1" : `0.${field}`;
    return parsed.kind === "ok" || parsed.faults.every(({ path }) => path !== `CATALOG_FILE ${place}`);
  });
  expect(passed.map(({ id }) => id)).toEqual(KNOWN_TO_PASS);
});

test("the screening passes marketing that only sounds like an attack", () => {
  expect(innocents.length).toBeGreaterThanOrEqual(30);
  const refused = innocents.flatMap(({ id, text }) => {
    const parsed = parseCatalog([{ ...AD, description: text }]);
    return parsed.kind === "ok" ? [] : [`${id} ${text} ${JSON.stringify(parsed.faults)}`];
  });
  expect(refused).toEqual([]);
});
