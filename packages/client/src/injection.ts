/** What an injection resulted in: a prompt with an ad, which must be acknowledged, or the caller's own prompt. */
import { ASYNC_DISPOSE, DISPOSE } from "./dispose.ts";
import type { RelayError } from "./errors.ts";
import type { AcknowledgmentOutcome, NoAdReason } from "./outcomes.ts";

/** The prompt has an ad. Acknowledge it once, with the text that the user was shown. */
export interface Injected extends Disposable, AsyncDisposable {
  readonly kind: "injected";
  /** The prompt with the ad: give it to the model in place of the user's message. Don't show or store it. */
  readonly prompt: string;
  readonly adResponseId: string;
  readonly productName: string | undefined;
  /** When the acknowledgment counts as missed; undefined if the relay doesn't say. A later one is accepted, too. */
  readonly acknowledgeBy: Date | undefined;
  /**
   * Acknowledges the ad with the text that the user was shown, `""` if none was. A very long one is cut. Never rejects. Resolves
   * after the first attempt to send it, and needs no waiting: the client sends it until the relay has it. Only the first call
   * counts.
   *
   * At the end of a `using` or `await using` block, an ad that wasn't acknowledged is acknowledged with `""`.
   */
  acknowledge(shownText: string): Promise<AcknowledgmentOutcome>;
}

/** There is no ad, and nothing to acknowledge. The chat goes on with the user's own prompt. */
export interface NotInjected extends Disposable, AsyncDisposable {
  readonly kind: "none";
  /** The caller's prompt, unchanged. */
  readonly prompt: string;
  readonly reason: NoAdReason;
  /** What went wrong, for logs. Undefined if there is simply no ad. */
  readonly error: RelayError | undefined;
  /** Of a fallback: what the service did, such as `timeout`. */
  readonly fallback: string | undefined;
}

/** `prompt` is what the model gets, whichever it is. */
export type Injection = Injected | NotInjected;

/** Why there is no ad, with what is known about it. */
export interface NoAd {
  readonly reason: NoAdReason;
  readonly error?: RelayError;
  readonly fallback?: string;
}

export function notInjected(prompt: string, { reason, error, fallback }: NoAd): NotInjected {
  return {
    kind: "none",
    prompt,
    reason,
    error,
    fallback,
    [DISPOSE]: () => {},
    [ASYNC_DISPOSE]: async () => {},
  };
}

/** What is known of an ad when it has come. */
export type Ad = Pick<Injected, "prompt" | "adResponseId" | "productName" | "acknowledgeBy">;

/** The relay takes bodies of 1 MiB. What a text has beyond this is left out, and so is its chance of an ad. */
export const TEXT_CHARS_MAX = 256 * 1024;

/** `send` is called at most once. In JavaScript a text may be null, such as the content of a message with tool calls. */
export function makeInjected(ad: Ad, send: (text: string) => Promise<AcknowledgmentOutcome>): Injected {
  let sent: Promise<AcknowledgmentOutcome> | undefined;
  const acknowledge = (shownText: string) => {
    sent ??= send(typeof shownText === "string" ? shownText.slice(0, TEXT_CHARS_MAX) : "");
    return sent;
  };
  return {
    kind: "injected",
    ...ad,
    acknowledge,
    [DISPOSE]: () => void acknowledge(""),
    [ASYNC_DISPOSE]: async () => void (await acknowledge("")),
  };
}
