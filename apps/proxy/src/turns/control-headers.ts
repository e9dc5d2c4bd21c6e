/**
 * What a call's headers say about its ad. A value that isn't known is no guess's matter: an ad that the backend didn't want, or
 * an acknowledgment that each side leaves to the other, costs money or trust. So such a call gets no ad.
 */
import type { ReadHeader } from "./injection-body.ts";

const AD_HEADER = "X-Adrelay-Ad";
const ACKNOWLEDGE_HEADER = "X-Adrelay-Acknowledge";

export type Controls =
  | { readonly kind: "off" }
  | { readonly kind: "unknown_value"; readonly header: string }
  | {
      readonly kind: "ad_wanted";
      /** The backend acknowledges by itself. */
      readonly isManual: boolean;
    };

/** Reads both headers. An absent or empty one says `on`, and `automatic`. */
export function readControls(header: ReadHeader): Controls {
  const ad = readValue(header, AD_HEADER) ?? "on";
  const acknowledge = readValue(header, ACKNOWLEDGE_HEADER) ?? "automatic";
  if (ad === "off") {
    return { kind: "off" };
  }
  if (ad !== "on") {
    return { kind: "unknown_value", header: AD_HEADER };
  }
  if (acknowledge !== "manual" && acknowledge !== "automatic") {
    return { kind: "unknown_value", header: ACKNOWLEDGE_HEADER };
  }
  return { kind: "ad_wanted", isManual: acknowledge === "manual" };
}

function readValue(header: ReadHeader, name: string): string | undefined {
  const value = header(name.toLowerCase())?.trim().toLowerCase();
  return value === "" ? undefined : value;
}
