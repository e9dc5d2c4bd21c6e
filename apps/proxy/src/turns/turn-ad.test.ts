import { WRAPPING_TYPES } from "@adrelay/contract";
import { expect, test } from "vitest";
import { turnAdOf } from "./turn-ad.ts";

const LANDING = "https://velmora.example/drift?a=1&b=2";
const adOf = (prompt: string, userText = "Which shoes?", productName?: string) =>
  turnAdOf({ prompt, userText, productName: productName ?? "Velmora Drift" });

/** As our ad server writes them; e2e/proxy-findings.test.ts has its real ones. */
const WRAPPED: Readonly<Record<(typeof WRAPPING_TYPES)[number], string>> = {
  xml: "<landing_url>https://velmora.example/drift?a=1&amp;b=2</landing_url>\n<user_message_1>\n{}\n</user_message_1>",
  plain: `landing_url: ${LANDING}\n=== USER MESSAGE 1 ===\n{}\n=== END OF USER MESSAGE 1 ===`,
  markdown: `\`\`\`text\nlanding_url: ${LANDING}\n\`\`\`\n\`\`\`text\n{}\n\`\`\``,
};

test.each(WRAPPING_TYPES)("the ad's address is read from a prompt in %s", (type) => {
  const prompt = WRAPPED[type].replace("{}", "Which shoes?");
  expect(adOf(prompt)).toEqual({ productName: "Velmora Drift", landingUrl: LANDING });
});

test.each(WRAPPING_TYPES)("an address of the user's own in %s isn't the ad's", (type) => {
  const userText = "Are those of https://shoes.test/a?x=1&y=2, (https://shoes.test/b) good?";
  expect(adOf(WRAPPED[type].replace("{}", userText), userText)?.landingUrl).toBe(LANDING);
  expect(adOf(`ad ${userText}`, userText)?.landingUrl).toBeUndefined();
});

test("several addresses of one host are one page, of two hosts none", () => {
  expect(adOf(`${LANDING}, https://velmora.example/other.`)?.landingUrl).toBe(LANDING);
  expect(adOf(`${LANDING} https://cdn.test/picture.png`)?.landingUrl).toBeUndefined();
});

test("punctuation after an address isn't part of it", () => {
  expect(adOf("See https://velmora.example/drift. It's good.")?.landingUrl).toBe(
    "https://velmora.example/drift",
  );
});

test.each([undefined, "", "  ", "x".repeat(301)])(
  "without a usable name there is nothing to look for: %j",
  (name) => {
    expect(turnAdOf({ prompt: LANDING, userText: "", productName: name })).toBeUndefined();
  },
);
