/** A comment without an end goes on to the end, as CSS has it. */
export const COMMENT = /\/\*.*?(?:\*\/|$)/gs;
const ZERO = /^[+-]?0*(?:\.0*)?(?:px|em|rem|%|pt|vw|vh|ch|ex)?$/;
/** So far outside that no screen shows it. */
const FAR = /-\d{3,}(?:\.\d+)?(?:px|em|rem|%|pt|vw|vh|ch)|-\d{2,}(?:em|rem)/;
const WHITE_NAMES = new Set(["white", "snow", "ivory", "ghostwhite", "floralwhite"]);
const RGB = /^rgba?\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})/;
const TRANSPARENT =
  /^(?:transparent$|#(?:[\da-f]{3}0|[\da-f]{6}00)$|(?:rgb|hsl)a?\((?:(?:[^,()]*,){3}|[^()]*\/)\s*(?:[.0][.0%]*\s*)?\))/;
/** Channels from here on can't be told from white. */
const WHITE_FROM = 0xf4;
/** A share of opacity that nobody can read. */
const OPACITY_MIN = 0.1;
/** At a tenth of its size, a text of 16 pixels can't be read. */
const SCALE_MIN = 0.15;

export function isZero(value: string): boolean {
  return value !== "" && ZERO.test(value);
}

export function isFarAway(value: string): boolean {
  return FAR.test(value);
}

/** Whether an opacity, such as `0.05` or `5%`, is next to none. */
export function isFaint(value: string): boolean {
  const share = Number.parseFloat(value) / (value.endsWith("%") ? 100 : 1);
  return share < OPACITY_MIN;
}

/** Whether a scale, such as `0.001` or `1%`, leaves next to nothing. */
export function isShrunk(value: string): boolean {
  const scale = Number.parseFloat(value) / (value.endsWith("%") ? 100 : 1);
  return scale < SCALE_MIN;
}

/** Text with escapes as CSS has them: `d\\69splay` is `display`. */
export function withoutEscapes(css: string): string {
  return css.replace(/\\(?:([\da-f]{1,6})\s?|(.))/gis, (_, digits?: string, char?: string) => {
    const code = Number.parseInt(digits ?? "", 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : (char ?? "\ufffd");
  });
}

/** Whether a font size is too small to be read. Relative sizes depend on that of the outer element. */
export function isTinySize(size: string, isOuterTiny: boolean): boolean {
  if (isZero(size) || /^0*\.[01]\d*(?:em|rem)$|^(?:0*\.\d+|1?\d)%$/.test(size)) {
    return true;
  }
  return /^[\d.]+(?:em|%)$/.test(size) ? isOuterTiny : /^(?:0*\.\d+|[12](?:\.\d+)?)(?:px|pt)$/.test(size);
}

/**
 * A colour in a form that can be compared: `transparent`, or hexadecimal digits where that is easy. Undefined if it is
 * the outer element's.
 */
export function colorOf(written: string | undefined): string | undefined {
  const color = written?.trim().toLowerCase() ?? "";
  if (color === "" || /^(?:inherit|initial|unset|revert|none|currentcolor|var\()/.test(color)) {
    return undefined;
  }
  if (TRANSPARENT.test(color)) {
    return "transparent";
  }
  const channels = channelsOf(color);
  if (channels === undefined) {
    return WHITE_NAMES.has(color) ? "#ffffff" : color === "black" ? "#000000" : color;
  }
  return channels.every((channel) => channel >= WHITE_FROM)
    ? "#ffffff"
    : `#${channels.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
}

function channelsOf(color: string): number[] | undefined {
  const digits = /^#([\da-f]{3}|[\da-f]{6})(?:[\da-f]{1,2})?(?![\da-f])/.exec(color)?.[1];
  if (digits !== undefined) {
    const long = digits.length === 3 ? digits.replace(/./g, "$&$&") : digits;
    return [0, 2, 4].map((at) => Number.parseInt(long.slice(at, at + 2), 16));
  }
  return RGB.exec(color)?.slice(1).map(Number);
}
