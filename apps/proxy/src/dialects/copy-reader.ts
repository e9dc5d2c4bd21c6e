/**
 * Reads a copy of a stream while the stream itself passes by: undoes its encoding, finds its events, and says what each event says
 * and how far the stream must be written until the event is.
 *
 * 1. Nothing here throws or waits into the stream. A fault is told once, and nothing is read after it.
 * 2. An event's end is never told too early: it may be told with the next chunk, but never with one before its last byte.
 * 3. What is kept is bounded: one event, and with an encoding also the chunks that aren't decoded yet. So is what is decoded in
 *    all: a gigabyte fits into a megabyte of gzip.
 */
import type { Transform } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { createParser, type EventSourceParser } from "eventsource-parser";
import { createDecoder, type Encoding, encodingOf } from "./decode-body.ts";
import type { AnswerReader, EventReading } from "./dialect.ts";

export type CopyFault =
  | { readonly kind: "event_too_large" }
  /** A `content-encoding` that can't be undone. */
  | { readonly kind: "unknown_encoding" }
  | { readonly kind: "broken_encoding" }
  /** Bytes come faster than they can be decoded. */
  | { readonly kind: "decoder_overrun" }
  /** It is far more than any answer's text, so it is a bomb. */
  | { readonly kind: "decoded_too_large" };

export interface CopyReaderOptions {
  readonly answer: AnswerReader;
  /** The answer's `content-encoding`. */
  readonly encoding: string | undefined;
  /** Counted in characters of UTF-16. */
  readonly eventSizeMax?: number;
  /**
   * An event that has text, ids of calls, or ends the step. `endOffset` counts the bytes of the stream up to the end of the chunk in
   * which the event's last byte came.
   */
  onReading(reading: EventReading, endOffset: number): void;
  /** Called at most once. */
  onFault(fault: CopyFault): void;
}

export interface CopyReader {
  /** The next bytes of the stream. Without an encoding, all readings come before this returns. */
  write(chunk: Buffer): void;
  /** The stream is at its end: `done` is called once, after the last reading. */
  end(done: () => void): void;
  /** Frees what the reader holds. Nothing is called after it. */
  close(): void;
}

const EVENT_SIZE_MAX = 4 * 1024 * 1024;
/** Text over PROXY_TEXT_LIMIT_BYTES isn't kept, and an event is rarely 50 times as long as its text. */
const DECODED_BYTES_MAX = 64 * 1024 * 1024;
const UNDECODED_BYTES_MAX = 8 * 1024 * 1024;

export function openCopyReader(options: CopyReaderOptions): CopyReader {
  const encoding = encodingOf(options.encoding);
  if (encoding === undefined) {
    options.onFault({ kind: "unknown_encoding" });
    return CLOSED;
  }
  const events = new EventFinder(options);
  return encoding === "identity" ? new PlainCopy(events) : new EncodedCopy(events, encoding);
}

const CLOSED: CopyReader = { write: () => {}, end: (done) => done(), close: () => {} };

/** Finds events in decoded bytes. */
class EventFinder {
  isClosed = false;
  readonly #options: CopyReaderOptions;
  readonly #parser: EventSourceParser;
  /** A character may be split between two chunks. */
  readonly #characters = new StringDecoder("utf8");
  #endOffset = 0;
  #isFirst = true;

  constructor(options: CopyReaderOptions) {
    this.#options = options;
    this.#parser = createParser({
      maxBufferSize: options.eventSizeMax ?? EVENT_SIZE_MAX,
      onEvent: ({ event, data }) => {
        if (this.isClosed) return;
        const reading = options.answer.read({ event, data });
        const saysSomething = reading.text !== "" || reading.callIds.length > 0 || reading.end !== undefined;
        if (saysSomething) options.onReading(reading, this.#endOffset);
      },
      // Unknown fields aren't faults.
      onError: ({ type }) => {
        if (type === "max-buffer-size-exceeded") this.fail({ kind: "event_too_large" });
      },
    });
  }

  feed(bytes: Buffer, endOffset: number): void {
    if (this.isClosed) return;
    this.#endOffset = endOffset;
    let text = this.#characters.write(bytes);
    if (text === "") return;
    if (this.#isFirst) {
      this.#isFirst = false;
      if (text.startsWith(BYTE_ORDER_MARK)) text = text.slice(1);
    }
    this.#parser.feed(text);
  }

  fail(fault: CopyFault): void {
    if (this.isClosed) return;
    this.close();
    this.#options.onFault(fault);
  }

  close(): void {
    this.isClosed = true;
  }
}

const BYTE_ORDER_MARK = "\uFEFF";

/** A stream without an encoding. */
class PlainCopy implements CopyReader {
  readonly #events: EventFinder;
  #offset = 0;

  constructor(events: EventFinder) {
    this.#events = events;
  }

  write(chunk: Buffer): void {
    this.#offset += chunk.length;
    this.#events.feed(chunk, this.#offset);
  }

  end(done: () => void): void {
    done();
  }

  close(): void {
    this.#events.close();
  }
}

/** A stream with an encoding. Its chunks are decoded one after the other, apart from the event loop's thread. */
class EncodedCopy implements CopyReader {
  readonly #events: EventFinder;
  readonly #decoder: Transform;
  /** Sizes of the chunks that aren't decoded yet. The first of them is being decoded. */
  readonly #sizes: number[] = [];
  #decodedBytes = 0;
  #outputBytes = 0;
  #done: (() => void) | undefined;

  constructor(events: EventFinder, encoding: Exclude<Encoding, "identity">) {
    this.#events = events;
    this.#decoder = createDecoder(encoding);
    this.#decoder.on("data", (bytes: Buffer) => this.#onDecoded(bytes));
    this.#decoder.on("error", () => events.fail({ kind: "broken_encoding" }));
    // It comes after the last data, after an error, and after `destroy`.
    this.#decoder.on("close", () => this.#finish());
  }

  write(chunk: Buffer): void {
    if (this.#events.isClosed) this.#decoder.destroy();
    if (this.#decoder.destroyed) return;
    if (this.#decoder.writableLength + chunk.length > UNDECODED_BYTES_MAX) {
      this.#events.fail({ kind: "decoder_overrun" });
      this.#decoder.destroy();
      return;
    }
    this.#sizes.push(chunk.length);
    this.#decoder.write(chunk, () => {
      this.#decodedBytes += this.#sizes.shift() ?? 0;
    });
  }

  end(done: () => void): void {
    if (this.#decoder.destroyed) {
      done();
      return;
    }
    this.#done = done;
    this.#decoder.end();
  }

  close(): void {
    this.#done = undefined;
    this.#events.close();
    this.#decoder.destroy();
  }

  #onDecoded(bytes: Buffer): void {
    this.#outputBytes += bytes.length;
    if (this.#outputBytes > DECODED_BYTES_MAX) {
      this.#events.fail({ kind: "decoded_too_large" });
    }
    // What comes out is of the chunk that is being decoded, or of one before it.
    this.#events.feed(bytes, this.#decodedBytes + (this.#sizes[0] ?? 0));
    if (this.#events.isClosed) this.#decoder.destroy();
  }

  #finish(): void {
    const done = this.#done;
    this.#done = undefined;
    done?.();
  }
}
