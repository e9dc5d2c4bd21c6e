import { domainToASCII } from "node:url";

/**
 * A landing URL as links have it: without blanks around it, and with the ASCII form of an international domain
 * (`xn--…`). The rest stays as it was written. Undefined if the text is no URL.
 */
export function asciiLandingUrl(written: string): string | undefined {
  const trimmed = written.trim();
  const url = URL.parse(trimmed);
  const [, authority = ""] = /^https:\/\/([^/?#\\]*)/.exec(trimmed) ?? [];
  if (url === null) {
    return undefined;
  }
  // A user name stays, because the screening refuses it.
  const isInternational = /[^\x21-\x7e]/.test(authority) && !authority.includes("@");
  return isInternational
    ? `https://${url.host}${trimmed.slice("https://".length + authority.length)}`
    : trimmed;
}

/** The ASCII form of a domain; the text itself if it is no domain. */
export function asciiDomain(text: string): string {
  return /^[\x21-\x7e]*$/.test(text) ? text : domainToASCII(text) || text;
}
