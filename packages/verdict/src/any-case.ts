/**
 * Parts of a pattern that are no letters of a text: escapes, the beginnings of groups, and what is in braces. A set of
 * characters is read as a whole; it must not have ranges of letters.
 */
const PART = /\\p\{[^{}]*\}|\\u[0-9a-fA-F]{4}|\\.|\(\?<?[:=!]|\{[^{}]*\}|(\[[^\]]*\])|(\p{L})/gu;

/**
 * A pattern that matches the letters of another one in any case. The modifier `(?i:)` would do the same, but V8 reads
 * it wrongly once a process has compiled many regular expressions: then `(?i:spf|lsf)` no longer matches "SPF".
 */
export function anyCase(pattern: string): string {
  return pattern.replace(PART, (part, set: string | undefined, letter: string | undefined) => {
    if (set !== undefined) {
      return set.replace(/\p{L}/gu, bothCases);
    }
    return letter === undefined || bothCases(letter).length === letter.length
      ? part
      : `[${bothCases(letter)}]`;
  });
}

function bothCases(letter: string): string {
  return [...new Set([letter.toLowerCase(), letter.toUpperCase()])]
    .filter((one) => one.length === letter.length)
    .join("");
}
