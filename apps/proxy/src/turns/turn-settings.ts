/** The settings of ads and turns. */
import { durationBetween, setting, sizeBetween } from "@adrelay/service-kit";

const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;
const SECOND_MS = 1000;
const DAY_MS = 86_400 * SECOND_MS;

export const TURN_SETTINGS = {
  PROXY_INJECTION_TIMEOUT_MS: setting(
    durationBetween(20, 30_000),
    "400",
    "How long a model call may wait for its ad, from the last byte of its body: look-up, ad call and booking together. After that the original prompt goes to the model.",
  ),
  PROXY_TURN_WAIT_MS: setting(
    durationBetween(SECOND_MS, DAY_MS),
    "10m",
    "How long a turn waits for its next step after the model has called a tool. Then it is acknowledged as it is. If it is more than half an hour, the alert AdrelayTurnsNotSettled needs a longer window. For the retry of a call of which nothing was written it waits as long, but 2 minutes at the most.",
  ),
  PROXY_TEXT_LIMIT_BYTES: setting(
    sizeBetween(KIBIBYTE, MEBIBYTE),
    "1048576",
    "Most bytes of the text of one step of a turn that are acknowledged. More is cut off, at a character. A whole turn has 1 MiB.",
  ),
  PROXY_JOURNAL_BYTES: setting(
    sizeBetween(MEBIBYTE, 64 * KIBIBYTE * MEBIBYTE),
    "67108864",
    "Most bytes of texts and prompts of turns that one proxy holds, for example while Redis is away. If it is reached, new calls get no ad, and further text is not acknowledged.",
  ),
} as const;
