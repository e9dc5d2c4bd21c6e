/**
 * 31 or more marks of one letter, with what is invisible between them. No spelling has as many; the stream-safe text format of
 * Unicode (UAX #15) has this bound, too. The half-width voicing marks are letters, of which normalising makes marks.
 */
const LONG_RUN = /([\p{M}\p{Cf}\uff9e\uff9f]{30})[\p{M}\p{Cf}\uff9e\uff9f]+/gu;
/** Two Arabic formulas as one character, of which normalising makes 18 and 8. It makes at most six of any other. */
const FORMULA = /[\ufdfa\ufdfb]/g;

/**
 * A text that is normalised in time: without the marks of a letter beyond 30, and with blanks for formulas. Normalising sorts the
 * marks of each letter, in a time that grows with the square of their number: it needs minutes for a megabyte of them.
 */
export function normalizable(text: string): string {
  return text.replace(LONG_RUN, "$1").replace(FORMULA, " ");
}
