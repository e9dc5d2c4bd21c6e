/** The part of a tokenizer that is used. The package's own types are lost under Node's rules of resolution. */
export interface Tokens {
  encode(text: string, options?: { add_special_tokens: boolean }): { readonly ids: readonly number[] };
}

/** No token of a model's vocabulary is longer on average, and no tokenizer reads more than this at once. */
const CHARS_PER_TOKEN_MAX = 16;

/**
 * Turns texts into token ids, at most so many, and frames them as the model wants it (such as [CLS] and [SEP]):
 * a text that is cut keeps its frame.
 */
export class TextEncoder {
  readonly #tokenizer: Tokens;
  readonly #frame: { readonly before: readonly number[]; readonly after: readonly number[] };
  readonly #bareTokensMax: number;
  readonly #charsMax: number;

  constructor(tokenizer: Tokens, tokensMax: number) {
    this.#tokenizer = tokenizer;
    this.#frame = frameOf(tokenizer);
    this.#bareTokensMax = Math.max(tokensMax - this.#frame.before.length - this.#frame.after.length, 1);
    this.#charsMax = tokensMax * CHARS_PER_TOKEN_MAX;
  }

  encode(text: string): number[] {
    // Unpaired halves of surrogates would end a tokenizer that reads by code points.
    const read = text.slice(0, this.#charsMax).toWellFormed();
    const bare = this.#tokenizer.encode(read, { add_special_tokens: false }).ids;
    return [...this.#frame.before, ...bare.slice(0, this.#bareTokensMax), ...this.#frame.after];
  }
}

function frameOf(tokenizer: Tokens) {
  const bare = tokenizer.encode("a", { add_special_tokens: false }).ids;
  const framed = tokenizer.encode("a").ids;
  const start = framed.findIndex((_, at) => bare.every((id, offset) => framed[at + offset] === id));
  return start < 0
    ? { before: [], after: [] }
    : { before: framed.slice(0, start), after: framed.slice(start + bare.length) };
}
