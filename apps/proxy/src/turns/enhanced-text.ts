/** The user's text with the ad, made from the enhanced prompt of the whole message. */

export interface EnhancedMessage {
  readonly prompt: string;
  /** All texts of the message, for which the ad service has made the prompt. */
  readonly messageText: string;
  /** The last of them, into whose place the ad goes. */
  readonly userText: string;
}

/**
 * The message's other texts stay in their places, so they are taken out of the prompt. That is possible only if the ad service put
 * its words around the message and left it as it was. Undefined if it didn't.
 */
export function enhancedText({ prompt, messageText, userText }: EnhancedMessage): string | undefined {
  if (messageText === userText) {
    return prompt;
  }
  const at = prompt.indexOf(messageText);
  const isOnce = at !== -1 && !prompt.includes(messageText, at + 1);
  return isOnce ? `${prompt.slice(0, at)}${userText}${prompt.slice(at + messageText.length)}` : undefined;
}
