import { bareHost, formsOfDomain, isWithin } from "./domains.ts";
import { closeMark, openMark } from "./marks.ts";

/** Where a link leads: to the landing page, to another page of its domain, or to another domain. */
export type LinkTarget = "page" | "domain" | "foreign";

/** The landing page of an ad, to which links of an answer are compared. */
export interface LandingPage {
  /**
   * Where the target of a link leads; undefined if it stays on the reader's page or is no web address.
   *
   * @param base the address that the answer's own `<base>` sets for relative links
   */
  targetOf(href: string, base?: string): LinkTarget | undefined;
  /** Encloses the web addresses that are written out in a text in marks. */
  withMarkedAddresses(text: string): string;
}

/** A relative link is resolved against this address, as a browser resolves it against its page. */
const OWN_PAGE = "https://own-page.invalid/";
/**
 * The catalogue has landing URLs in ASCII, so that an address ends before a letter of a script that has no blanks between
 * words. Only the landing page's own domain is found in such letters.
 */
const ADDRESS_END =
  "\\s<>\"'()[\\]|\\ue000-\\ue009\\u3001\\u3002\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Devanagari}";
const ABSOLUTE = `(?:https?://|(?<![\\p{L}\\p{N}.-])www\\.)[^${ADDRESS_END}]{1,2048}`;
const PATH = `(?::\\d{1,5})?(?:/[^${ADDRESS_END}]{0,2048})?`;
/** Punctuation after an address belongs to the sentence. The look-behind keeps the search from beginning within a run again. */
const TRAILING = /(?<![.,;:!?*_~`])[.,;:!?*_~`]+$/;

/** Without a landing URL, no link is compared. */
export function landingPageOf(landingUrl: string): LandingPage {
  const landing = URL.parse(landingUrl);
  if (landing === null) {
    return { targetOf: () => undefined, withMarkedAddresses: (text) => text };
  }
  const addresses = addressPattern(bareHost(landing.hostname));
  return {
    targetOf: (href, base) => targetOf(href, landing, base),
    withMarkedAddresses: (text) =>
      text.replace(addresses, (found) => {
        const address = found.replace(TRAILING, "");
        const target = targetOf(/^https?:/i.test(address) ? address : `https://${address}`, landing);
        const rest = found.slice(address.length);
        return target === undefined ? found : `${enclosed(enclosed(address, target), "address")}${rest}`;
      }),
  };
}

function enclosed(text: string, kind: LinkTarget | "address"): string {
  return `${openMark(kind)}${text}${closeMark(kind)}`;
}

/** Any address with a scheme or `www`, and the landing page's domain without them, in ASCII or in its own letters. */
function addressPattern(host: string): RegExp {
  const written = formsOfDomain(host)
    .map((name) => name.replace(/[.$*+?()]/g, "\\$&"))
    .join("|");
  // A mail address, a longer domain or the user part of a URL doesn't link to the domain.
  return new RegExp(
    `${ABSOLUTE}|(?<![\\p{Script=Latin}\\p{N}@_-])(?:${written})(?![\\p{Script=Latin}\\p{N}@-]|\\.[\\p{Script=Latin}\\p{N}])${PATH}`,
    "giu",
  );
}

function targetOf(href: string, landing: URL, base?: string): LinkTarget | undefined {
  const ownPage = URL.parse(base?.trim() ?? "", OWN_PAGE)?.href ?? OWN_PAGE;
  const url = URL.parse(href.trim(), ownPage);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    return undefined;
  }
  if (url.origin === new URL(OWN_PAGE).origin) {
    return relativeTarget(href, landing);
  }
  if (!isSameDomain(bareHost(url.hostname), bareHost(landing.hostname))) {
    return "foreign";
  }
  return leadsTo(url.pathname.toLowerCase(), landing.pathname.toLowerCase()) ? "page" : "domain";
}

/** Models forget the scheme: "velmora.example/drift". Other relative links stay on the reader's page. */
function relativeTarget(href: string, landing: URL): LinkTarget | undefined {
  const [host = ""] = href.trim().split(/[/?#]/, 1);
  return /^[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*\.\p{L}{2,}$/u.test(host) &&
    !/\.(?:html?|php|md|pdf)$/i.test(host)
    ? targetOf(`https://${href.trim()}`, landing)
    : undefined;
}

/** Subdomains count on both sides: an ad may lead to the shop of a company, and the answer to the company. */
function isSameDomain(host: string, landingHost: string): boolean {
  return isWithin(host, landingHost) || (host.includes(".") && isWithin(landingHost, host));
}

/**
 * The bare domain counts as the landing page, too. Another page of the domain doesn't: it may be another product's.
 */
function leadsTo(path: string, landingPath: string): boolean {
  const segments = segmentsOf(path.replace(/(?<![.,;:!])[.,;:!]+$/, ""));
  const page = segmentsOf(landingPath).at(-1);
  return segments.length === 0 || page === undefined || segments.includes(page);
}

function segmentsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "");
}
