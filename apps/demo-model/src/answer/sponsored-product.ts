/**
 * Finds the ad that our ad server has written into a prompt, in each of its three formats. A real model reads them; this
 * one looks for their marks.
 */
export interface SponsoredProduct {
  readonly name: string;
  readonly advertiser: string;
  readonly description: string;
  readonly landingUrl: string;
}

/** The text of a user, and the ad that was put around it. */
export interface ReadPrompt {
  /** What the user wrote, without the ad's part. */
  readonly userText: string;
  readonly product: SponsoredProduct | undefined;
}

interface Wrapping {
  /** Finds the first mark, and in it the nonce. */
  readonly opening: RegExp;
  /** The section with the facts ends here. */
  factsEnd(nonce: string): string;
  userStart(nonce: string): string;
  userEnd(nonce: string): string;
  readonly fact: RegExp;
  readonly isFenced?: boolean;
  unescaped?(text: string): string;
}

const LABELLED = /^(product|advertiser|description|landing_url): (.*)$/gmu;

const WRAPPINGS: readonly Wrapping[] = [
  {
    opening: /^<sponsored_product_([0-9a-z]+)>$/mu,
    factsEnd: (nonce) => `</sponsored_product_${nonce}>`,
    userStart: (nonce) => `<user_message_${nonce}>\n`,
    userEnd: (nonce) => `\n</user_message_${nonce}>`,
    fact: /<(product|advertiser|description|landing_url)>([^<]*)<\/\1>/gu,
    unescaped: (text) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&"),
  },
  {
    opening: /^=== SPONSORED PRODUCT ([0-9a-z]+) ===$/mu,
    factsEnd: (nonce) => `=== INSTRUCTIONS ${nonce} ===`,
    userStart: (nonce) => `=== USER MESSAGE ${nonce} ===\n`,
    userEnd: (nonce) => `\n=== END OF USER MESSAGE ${nonce} ===`,
    fact: LABELLED,
  },
  {
    opening: /^## Sponsored product ([0-9a-z]+)$/mu,
    factsEnd: (nonce) => `## Instructions ${nonce}`,
    userStart: (nonce) => `## User message ${nonce}\n\n`,
    userEnd: (nonce) => `\n\n## End of user message ${nonce}`,
    fact: LABELLED,
    isFenced: true,
  },
];

/** Tells the user's own text and the ad apart. A text in no known format is the user's as a whole. */
export function readPrompt(text: string): ReadPrompt {
  for (const wrapping of WRAPPINGS) {
    const opening = wrapping.opening.exec(text);
    const nonce = opening?.[1];
    if (opening !== null && nonce !== undefined) {
      const facts = between(text, opening[0], wrapping.factsEnd(nonce));
      const userText = between(text, wrapping.userStart(nonce), wrapping.userEnd(nonce));
      return {
        userText: wrapping.isFenced === true ? withoutFence(userText) : userText,
        product: productOf(facts, wrapping),
      };
    }
  }
  return { userText: text, product: undefined };
}

function between(text: string, from: string, to: string): string {
  const start = text.indexOf(from);
  const end = text.lastIndexOf(to);
  return start < 0 || end < start ? "" : text.slice(start + from.length, end);
}

function withoutFence(text: string): string {
  return text.split("\n").slice(1, -1).join("\n");
}

function productOf(facts: string, { fact, unescaped = String }: Wrapping): SponsoredProduct | undefined {
  const found = new Map(
    [...facts.matchAll(fact)].map(([, label = "", text = ""]) => [label, unescaped(text)] as const),
  );
  const name = found.get("product");
  return name === undefined
    ? undefined
    : {
        name,
        advertiser: found.get("advertiser") ?? "",
        description: found.get("description") ?? "",
        landingUrl: found.get("landing_url") ?? "",
      };
}
