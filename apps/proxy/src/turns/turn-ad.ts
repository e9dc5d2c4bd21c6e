/** What the ad service's answer tells of its ad, so that it can be found in the model's answer. */
import type { TurnAd } from "@adrelay/core";

/** Longer names are no names. */
const NAME_CHARS_MAX = 300;
const ADDRESS = /https?:\/\/[^\s<>"'`()[\]{}|\\]{1,2048}/g;
/** The look-behind keeps the search from beginning within a run again. */
const TRAILING = /(?<![.,;:!?*_~])[.,;:!?*_~]+$/;

export interface FilledAnswer {
  readonly prompt: string;
  readonly productName: string | undefined;
  /** What the ad was asked for. It stands in the prompt, too, and may have addresses of its own. */
  readonly userText: string;
}

/** Undefined if the product has no name: then nobody knows what to look for. */
export function turnAdOf({ prompt, productName, userText }: FilledAnswer): TurnAd | undefined {
  const name = productName?.trim() ?? "";
  return name === "" || name.length > NAME_CHARS_MAX
    ? undefined
    : { productName: name, landingUrl: landingUrlOf(prompt, userText) };
}

/**
 * The interface has no member for the landing page, but the model must know it to link to it. So it is the address that the ad
 * service has put into the prompt. Undefined if there is none, or if addresses of several hosts are there: then no one can tell
 * which of them is the ad's.
 */
function landingUrlOf(prompt: string, userText: string): string | undefined {
  const own = new Set(addressesIn(userText));
  const added = addressesIn(prompt).filter((address) => !own.has(address));
  const hosts = new Set(added.map((address) => URL.parse(address)?.host));
  return hosts.size === 1 ? added[0] : undefined;
}

/** One format of prompts is XML, which escapes the ad's texts. */
function addressesIn(text: string): string[] {
  return (text.match(ADDRESS) ?? []).map((address) => address.replaceAll("&amp;", "&").replace(TRAILING, ""));
}
