import { instructionsWith } from "./instructions.ts";
import type { WrapParts } from "./wrap-prompt.ts";

/** Elements named with the nonce. The ad's text is escaped; the prompt is not, so that it stays as written. */
export function wrapAsXml({ prompt, facts, nonce }: WrapParts): string {
  return [
    `<sponsored_product_${nonce}>`,
    ...facts.map(([label, text]) => `  <${label}>${escapeXml(text)}</${label}>`),
    `</sponsored_product_${nonce}>`,
    `<instructions_${nonce}>`,
    ...instructionsWith(nonce),
    `</instructions_${nonce}>`,
    `<user_message_${nonce}>`,
    prompt,
    `</user_message_${nonce}>`,
  ].join("\n");
}

/** Escapes text for the content of an element. */
export function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
