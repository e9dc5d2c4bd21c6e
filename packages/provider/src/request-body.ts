/**
 * The body of a request to a provider. undici holds what it was given until the call has ended. So a long body is given to
 * it in pieces, and is let go of once the connection has taken the last one.
 */

/** A body up to this length is given as a whole, which is faster. */
const WHOLE_BYTES_MAX = 64 * 1024;
const PIECE_BYTES = 64 * 1024;

interface PreparedBody {
  readonly body: string | Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

const NO_HEADERS = {};

export function prepareBody(body: string | Buffer): PreparedBody {
  if (body.length <= WHOLE_BYTES_MAX) {
    return { body, headers: NO_HEADERS };
  }
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  // Without this header undici would send chunks, of which some services don't know the length.
  const pieces: unknown = new BodyPieces(bytes);
  // undici takes iterables by its documentation, but not by its types.
  return { body: pieces as Buffer, headers: { "content-length": String(bytes.length) } };
}

/** Can be read once. */
class BodyPieces implements Iterable<Buffer>, Iterator<Buffer> {
  #rest: Buffer;

  constructor(bytes: Buffer) {
    this.#rest = bytes;
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<Buffer, undefined> {
    if (this.#rest.length === 0) {
      return { done: true, value: undefined };
    }
    const value = this.#rest.subarray(0, PIECE_BYTES);
    this.#rest = value.length < this.#rest.length ? this.#rest.subarray(PIECE_BYTES) : NOTHING;
    return { done: false, value };
  }

  /** Called if the call ends before everything was read. */
  return(): IteratorResult<Buffer, undefined> {
    this.#rest = NOTHING;
    return { done: true, value: undefined };
  }
}

const NOTHING = Buffer.alloc(0);
