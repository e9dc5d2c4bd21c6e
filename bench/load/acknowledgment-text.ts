const SENTENCE =
  'For a first marathon, look for a shoe with "enough" cushioning; the Velmora Drift is a good example.\n';
const TEXT_CHARS = 2048;

/** What a model answered: 2 KB. */
export const ANSWER_TEXT = SENTENCE.repeat(Math.ceil(TEXT_CHARS / SENTENCE.length)).slice(0, TEXT_CHARS);

const ESCAPED = JSON.stringify(ANSWER_TEXT);
const NUMBER_DIGITS = 12;

/** The n-th ad response of a series; a prefix is eight hex digits. */
export function benchId(prefix: string, n: number): string {
  return `${prefix}-0000-4000-8000-${n.toString(16).padStart(NUMBER_DIGITS, "0")}`;
}

/** The body of an acknowledgment. */
export function acknowledgmentBody(id: string): string {
  return `{"ad_response_id":"${id}","llm_response":${ESCAPED}}`;
}

/** A prefix that no other series of this run has. */
export function freshPrefix(): string {
  series += 1;
  return series.toString(16).padStart(8, "0");
}
let series = 0;
