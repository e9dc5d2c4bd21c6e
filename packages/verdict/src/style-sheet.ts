import { withoutEscapes } from "./css-values.ts";

/** Style sheets of an answer are short. More than this isn't read. */
const SHEET_CHARS_MAX = 50_000;
const STYLE_ELEMENT = /<style\b[^<>]{0,500}>([^<]*)/gi;
const RULE = /([^{}]{1,500})\{([^{}]{0,2000})\}/g;
/** One element, class or id, such as `p`, `.promo`, `p.promo` or `#promo`. */
const SIMPLE_SELECTOR = /^[a-z][\w-]*$|^(?:[a-z][\w-]*)?[.#][\w-]+$/i;

/** What an answer's own style sheets say about an element, as the text of a `style` attribute. */
export interface StyleSheet {
  declarationsOf(tagName: string, attributes: ReadonlyMap<string, string>): string;
}

/**
 * Reads the rules with simple selectors. Of a selector with several parts, the last one counts if it has a class or an
 * id. Whatever else a style sheet can do is left aside.
 */
export function styleSheetOf(html: string): StyleSheet {
  const rules = new Map<string, string>();
  for (const [, sheet = ""] of html.matchAll(STYLE_ELEMENT)) {
    const css = sheet.slice(0, SHEET_CHARS_MAX).replace(/\/\*[\s\S]*?\*\//g, "");
    for (const [, selectors = "", declarations = ""] of css.matchAll(RULE)) {
      for (const written of withoutEscapes(selectors).toLowerCase().split(",")) {
        const parts = written.trim().split(/[\s>+~]+/);
        const selector = parts.at(-1) ?? "";
        if (SIMPLE_SELECTOR.test(selector) && (parts.length === 1 || /[.#]/.test(selector))) {
          rules.set(selector, `${rules.get(selector) ?? ""}${declarations};`);
        }
      }
    }
  }
  if (rules.size === 0) {
    return { declarationsOf: () => "" };
  }
  return {
    declarationsOf: (tagName, attributes) =>
      selectorsOf(tagName, attributes)
        .map((selector) => rules.get(selector) ?? "")
        .join(""),
  };
}

/** From the weakest to the strongest, since a later declaration of a property replaces an earlier one. */
function selectorsOf(tagName: string, attributes: ReadonlyMap<string, string>): string[] {
  const classes = (attributes.get("class") ?? "")
    .toLowerCase()
    .split(/\s+/)
    .filter((name) => name !== "");
  const id = (attributes.get("id") ?? "").toLowerCase();
  return [
    tagName,
    ...classes.map((name) => `.${name}`),
    ...classes.map((name) => `${tagName}.${name}`),
    `#${id}`,
    `${tagName}#${id}`,
  ];
}
