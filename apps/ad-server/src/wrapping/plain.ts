import { instructionsWith } from "./instructions.ts";
import type { WrapParts } from "./wrap-prompt.ts";

/** Lines of plain text between marks with the nonce. */
export function wrapAsPlainText({ prompt, facts, nonce }: WrapParts): string {
  return [
    `=== SPONSORED PRODUCT ${nonce} ===`,
    ...facts.map(([label, text]) => `${label}: ${text}`),
    `=== INSTRUCTIONS ${nonce} ===`,
    ...instructionsWith(nonce),
    `=== USER MESSAGE ${nonce} ===`,
    prompt,
    `=== END OF USER MESSAGE ${nonce} ===`,
  ].join("\n");
}
