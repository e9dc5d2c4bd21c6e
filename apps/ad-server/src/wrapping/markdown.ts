import { instructionsWith } from "./instructions.ts";
import type { WrapParts } from "./wrap-prompt.ts";

/**
 * Headings with the nonce. Facts and prompt stand in code fences, where Markdown has no markup to escape:
 * a fact is one line behind its label, and the prompt's fence is longer than any run of backticks in it.
 */
export function wrapAsMarkdown({ prompt, facts, nonce }: WrapParts): string {
  const fence = fenceFor(prompt);
  return [
    `## Sponsored product ${nonce}`,
    "",
    "```text",
    ...facts.map(([label, text]) => `${label}: ${text}`),
    "```",
    "",
    `## Instructions ${nonce}`,
    "",
    ...instructionsWith(nonce).map((sentence) => `- ${sentence}`),
    "",
    `## User message ${nonce}`,
    "",
    `${fence}text`,
    prompt,
    fence,
    "",
    `## End of user message ${nonce}`,
  ].join("\n");
}

/** A fence that no line of the text can close (CommonMark 4.5: a closing fence is at least as long). */
export function fenceFor(text: string): string {
  const longest = (text.match(/`+/g) ?? []).reduce((max, run) => Math.max(max, run.length), 0);
  return "`".repeat(Math.max(3, longest + 1));
}
