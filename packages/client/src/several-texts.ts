/** Messages with several texts: an ad is asked for all of them together, and goes into the last one. Blank ones don't count. */

export const isNotBlank = (text: string): boolean => text.trim() !== "";

/** All texts as one. */
export const joinTexts = (texts: readonly string[]): string => texts.join("\n\n");

/**
 * The last text with the ad. The other texts stay in their places, so they are taken out of the prompt. Undefined if the ad
 * service didn't leave them as they were.
 */
export function lastTextWithAd(prompt: string, texts: readonly string[]): string | undefined {
  if (texts.length === 1) {
    return prompt;
  }
  const around = prompt.split(joinTexts(texts));
  return around.length === 2 ? around.join(texts.at(-1)) : undefined;
}
