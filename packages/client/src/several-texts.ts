/** Messages with several texts: an ad is asked for all of them together, and goes into the last one. */

/** All texts as one, without blank ones. */
export function joinTexts(texts: readonly string[]): string {
  return texts.filter((text) => text.trim() !== "").join("\n\n");
}

/**
 * The last text with the ad. The other texts stay in their places, so they are taken out of the prompt. Undefined if the ad
 * service didn't leave them as they were.
 */
export function lastTextWithAd(prompt: string, texts: readonly string[]): string | undefined {
  const [last = ""] = texts.slice(-1);
  const joined = joinTexts(texts);
  if (joined === last) {
    return prompt;
  }
  const [before, after, more] = prompt.split(joined);
  return after === undefined || more !== undefined ? undefined : `${before}${last}${after}`;
}
