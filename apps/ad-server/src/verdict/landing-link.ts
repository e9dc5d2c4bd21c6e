import { decodeHTML } from "entities";
import { normalized } from "./readable-text.ts";

const PATH = "(?::\\d{1,5})?(/[^\\s<>\"'()[\\]|\\u3001\\u3002]{0,2048})?";

/**
 * Where a text links to the landing page, in the text as `linkText` gives it. Its domain alone counts, with
 * a subdomain too. Another page of the same domain doesn't: it may be another product's.
 */
export function findLinks(text: string, landingUrl: string): { start: number; end: number }[] {
  const landing = URL.parse(landingUrl);
  if (landing === null) {
    return [];
  }
  const host = landing.hostname.replace(/^www\./, "").replaceAll(".", "\\.");
  // An address of mail, a longer domain and the user's part of a URL are not its domain.
  const pattern = new RegExp(
    `(?<![\\p{Script=Latin}\\p{N}@_-])${host}(?![\\p{Script=Latin}\\p{N}@-]|\\.[\\p{Script=Latin}\\p{N}])${PATH}`,
    "giu",
  );
  return [...text.matchAll(pattern)]
    .filter(([, path = "/"]) => leadsTo(path.toLowerCase(), landing.pathname.toLowerCase()))
    .map(({ 0: link, index }) => ({ start: index, end: index + link.length }));
}

/** A text with its links as they lead. */
export function linkText(text: string): string {
  return normalized(decodeHTML(text), "NFKC").replace(/[\p{Cf}*`\\]/gu, "");
}

function leadsTo(path: string, landingPath: string): boolean {
  const segments = segmentsOf(path.replace(/[?#].*$/, "").replace(/[.,;:!]+$/, ""));
  const page = segmentsOf(landingPath).at(-1);
  return segments.length === 0 || page === undefined || segments.includes(page);
}

function segmentsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "");
}
