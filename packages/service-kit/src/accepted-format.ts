/** Which format of metrics a scraper gets, by the quality values of its `Accept` (RFC 9110, section 12.5.1). */

const OPEN_METRICS = "application/openmetrics-text";
const TEXT = "text/plain";

interface MediaRange {
  readonly type: string;
  /** From 0, which means not acceptable, to 1. */
  readonly quality: number;
}

/**
 * OpenMetrics if the scraper prefers it, or names it and likes it as much as text. Without any acceptable format it is text:
 * a scraper can still try to read it.
 */
export function acceptedFormat(accept: string): "open_metrics" | "text" {
  const ranges = accept.split(",").map(parseRange);
  const [open, text] = [qualityOf(ranges, OPEN_METRICS), qualityOf(ranges, TEXT)];
  const isNamed = ranges.some(({ type }) => type === OPEN_METRICS);
  return open > text || (open === text && open > 0 && isNamed) ? "open_metrics" : "text";
}

/** Other parameters than `q`, such as a version, are ignored: there is one version of each format. */
function parseRange(range: string): MediaRange {
  const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
  const [quality] = parameters.flatMap(
    (parameter) => /^q\s*=\s*(\d(?:\.\d*)?|\.\d+)$/.exec(parameter)?.[1] ?? [],
  );
  return { type, quality: quality === undefined ? 1 : Number(quality) };
}

/** The most specific range decides; of several equal ones, the one with the highest quality. */
function qualityOf(ranges: readonly MediaRange[], type: string): number {
  const [main = ""] = type.split("/");
  for (const candidate of [type, `${main}/*`, "*/*"]) {
    const qualities = ranges.filter((range) => range.type === candidate).map(({ quality }) => quality);
    if (qualities.length > 0) {
      return Math.max(...qualities);
    }
  }
  return 0;
}
