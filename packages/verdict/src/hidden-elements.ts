import { colorOf, isFaint, isFarAway, isShrunk, isTinySize, isZero } from "./css-values.ts";
import type { Declarations } from "./style-sheet.ts";

/** Elements whose content no browser shows, or shows only to those who lack a feature. */
const HIDDEN_ELEMENTS = new Set(
  (
    "annotation annotation-xml area audio base canvas col colgroup datalist defs desc embed frame frameset head iframe " +
    "link meta metadata meter noembed noframes noscript param progress rp script source style template title " +
    "track video"
  ).split(" "),
);
/** Classes that the common style sheets hide. */
const HIDDEN_CLASSES =
  /(?:^|\s)(?:sr-only|visually-?hidden|screen-reader-(?:text|only)|a11y-hidden|hidden|is-hidden|u-hidden|hide|d-none|display-none|invisible|opacity-0|text-transparent)(?:\s|$)/i;

export type Attributes = ReadonlyMap<string, string>;

/** What hides an element's text. The element may be gone for good; the rest an element within it can change back. */
export interface Appearance {
  readonly isGone: boolean;
  readonly isInvisible: boolean;
  readonly isTiny: boolean;
  readonly color: string | undefined;
  readonly background: string | undefined;
}

export const PLAIN: Appearance = {
  isGone: false,
  isInvisible: false,
  isTiny: false,
  color: undefined,
  background: undefined,
};

/**
 * How an element appears within another one. `declared`: what styles say of it. `aria-hidden` counts as hidden: those who
 * listen to the answer don't get that text.
 */
export function appearanceOf(
  tagName: string,
  { attributes, declared }: { readonly attributes: Attributes; readonly declared: Declarations },
  outer: Appearance,
): Appearance {
  if (attributes.size === 0 && declared.size === 0) {
    return { ...outer, isGone: isGoneByName(tagName, attributes) };
  }
  const value = (property: string) => declared.get(property) ?? attributes.get(property);
  const visibility = value("visibility");
  const size = value("font-size") ?? fontSizeOf(declared.get("font"));
  const background = value("background-color") ?? value("background") ?? attributes.get("bgcolor");
  const color = declared.get("-webkit-text-fill-color") ?? value("color");
  return {
    isGone: isGoneByName(tagName, attributes) || isGoneByStyle((property) => value(property) ?? ""),
    isInvisible: visibility === undefined ? outer.isInvisible : /^(?:hidden|collapse)/.test(visibility),
    isTiny: size === undefined ? outer.isTiny : isTinySize(size, outer.isTiny),
    color: colorOf(color) ?? outer.color,
    background: backgroundOf(background) ?? outer.background ?? unknownBackground(attributes),
  };
}

/**
 * Whether a reader can see text with this appearance. Text in the colour of its background can't be seen. A background
 * that nothing sets is taken to be white.
 */
export function isSeen({ isInvisible, isTiny, color, background }: Appearance): boolean {
  const isBlank = color !== undefined && (color === "transparent" || color === (background ?? "#ffffff"));
  return !isInvisible && !isTiny && !isBlank;
}

function isGoneByName(tagName: string, attributes: Attributes): boolean {
  return (
    HIDDEN_ELEMENTS.has(tagName) ||
    attributes.has("hidden") ||
    attributes.has("popover") ||
    /^\s*true\s*$/i.test(attributes.get("aria-hidden") ?? "") ||
    HIDDEN_CLASSES.test(attributes.get("class") ?? "") ||
    // Without data, an object shows its content instead.
    (tagName === "object" && attributes.has("data")) ||
    (tagName === "dialog" && !attributes.has("open")) ||
    (tagName === "input" && /^hidden$/i.test(attributes.get("type") ?? ""))
  );
}

const PLACES = [
  "left",
  "top",
  "right",
  "bottom",
  "inset",
  "text-indent",
  "margin",
  "margin-left",
  "margin-top",
];
const SIZES = ["width", "height", "max-width", "max-height"];

function isGoneByStyle(value: (property: string) => string): boolean {
  const transform = `${value("transform")} ${value("translate")}`;
  const isSmall = SIZES.some((size) => isZero(value(size)) || value(size) === "1px");
  const isCut = /hidden|clip/.test(`${value("overflow")} ${value("overflow-x")} ${value("overflow-y")}`);
  return (
    /^none/.test(value("display")) ||
    /^hidden/.test(value("content-visibility")) ||
    isFaint(value("opacity")) ||
    isFaint(/opacity\(([^()]*)\)/.exec(value("filter"))?.[1] ?? "") ||
    (isSmall && isCut) ||
    /^rect\(\s*(?:0|1px)/.test(value("clip")) ||
    /inset\(\s*(?:[5-9]\d|100)(?:\.\d+)?%|circle\(\s*0/.test(value("clip-path")) ||
    [...transform.matchAll(/scale(?:[xy]|3d)?\(([^()]*)\)/g)].some(([, scales = ""]) =>
      isAnyShrunk(scales),
    ) ||
    isAnyShrunk(value("scale")) ||
    isShrunk(value("zoom")) ||
    isFarAway(transform) ||
    PLACES.some((place) => isFarAway(value(place)))
  );
}

/** Of `0.001` or `1, 0`, one for each direction. Negative scales mirror, and so a text stays as large. */
function isAnyShrunk(scales: string): boolean {
  return scales.split(/[\s,]+/).some((scale) => isShrunk(scale.replace(/^-/, "")));
}

/** The size in the shorthand `font: 0/0 serif`. */
function fontSizeOf(font: string | undefined): string | undefined {
  return font === undefined
    ? undefined
    : /(?:^|\s)([\d.]+(?:px|pt|em|rem|%)?)(?:\s*\/|\s+\S)/.exec(font)?.[1];
}

/** A class may set a dark background by a style sheet of the page. */
function unknownBackground(attributes: Attributes): string | undefined {
  return attributes.has("class") ? "unknown" : undefined;
}

function backgroundOf(written: string | undefined): string | undefined {
  const color = colorOf(written);
  return color === "transparent" ? undefined : color;
}
