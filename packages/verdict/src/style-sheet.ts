import { COMMENT, withoutEscapes } from "./css-values.ts";

/** Style sheets of an answer are short. More than this isn't read. */
const SHEET_CHARS_MAX = 50_000;
const STYLE_ELEMENT = /<style\b[^<>]{0,500}>([^<]*)/gi;
const RULE = /([^{}]{1,500})\{([^{}]{0,2000})\}/g;
/** One element, class or id, such as `p`, `.promo`, `p.promo` or `#promo`. */
const SIMPLE_SELECTOR = /^[a-z][\w-]*$|^(?:[a-z][\w-]*)?[.#][\w-]+$/i;

/** How much is read of what one element's styles say. */
const STYLE_CHARS_MAX = 4000;
/** How much of that is read for all elements of an answer, each text once. Beyond it only the elements' own styles are read. */
const STYLES_CHARS_MAX = 200_000;

/** Values by their properties. */
export type Declarations = ReadonlyMap<string, string>;

const NONE: Declarations = new Map();

/** What an answer's style sheets and the attribute `style` say about an element. The attribute is stronger. */
export interface StyleSheet {
  declarationsOf(tagName: string, attributes: ReadonlyMap<string, string>): Declarations;
}

export function styleSheetOf(html: string): StyleSheet {
  const rules = rulesOf(html);
  const known = new Map<string, Declarations>();
  let charsLeft = STYLES_CHARS_MAX;
  return {
    declarationsOf: (tagName, attributes) => {
      const own = attributes.get("style") ?? "";
      const fromSheets = rules.size === 0 ? "" : textOf(rules, selectorsOf(tagName, attributes));
      const style = `${fromSheets}${own}`.slice(0, STYLE_CHARS_MAX);
      const found = style === "" ? NONE : known.get(style);
      if (found !== undefined) {
        return found;
      }
      charsLeft -= style.length;
      if (charsLeft < 0) {
        return readDeclarations(own.slice(0, STYLE_CHARS_MAX));
      }
      const declarations = readDeclarations(style);
      known.set(style, declarations);
      return declarations;
    },
  };
}

function textOf(rules: ReadonlyMap<string, string>, selectors: readonly string[]): string {
  return selectors.map((selector) => rules.get(selector) ?? "").join("");
}

function readDeclarations(style: string): Declarations {
  return new Map(
    style
      .replace(COMMENT, "")
      .toLowerCase()
      .split(";")
      .map((declaration): [string, string] => {
        const [property = "", ...value] = declaration.split(":");
        return [
          withoutEscapes(property).trim().toLowerCase(),
          withoutEscapes(value.join(":"))
            .toLowerCase()
            .replace(/!\s*important/, "")
            .trim(),
        ];
      })
      .filter(([, value]) => value !== ""),
  );
}

/**
 * The declarations of rules by their selectors. Reads the rules with simple selectors. Of a selector with several parts, the last one counts if it has a class or an
 * id. Whatever else a style sheet can do is left aside.
 */
function rulesOf(html: string): ReadonlyMap<string, string> {
  const rules = new Map<string, string>();
  for (const [, sheet = ""] of html.matchAll(STYLE_ELEMENT)) {
    const css = sheet.slice(0, SHEET_CHARS_MAX).replace(COMMENT, "");
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
  return rules;
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
