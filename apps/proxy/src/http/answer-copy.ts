/**
 * Reads an answer beside its way to the caller, and tells the step what was written.
 *
 * 1. Every chunk goes to the caller first, and is read afterwards.
 * 2. An event is written once `write` of the response has called back, without an error, for the chunk with its last byte.
 *    That may never happen. What hasn't been written when the response closes never counts.
 * 3. No fault here touches the answer. It is counted, and the step is settled with what was read.
 */
import type { ServerResponse } from "node:http";
import type { StepEnd } from "@adrelay/core";
import { Pieces } from "@adrelay/service-kit";
import { type CopyReader, openCopyReader } from "../dialects/copy-reader.ts";
import { decodeBody, encodingOf } from "../dialects/decode-body.ts";
import type { Dialect, EventReading } from "../dialects/dialect.ts";
import type { StepSink } from "./call.ts";

/** The copy of one answer. */
export interface AnswerCopy {
  /** How many events were read that say something. */
  readonly events: number;
  /** How the step ended; undefined as long as it hasn't. */
  readonly end: StepEnd | undefined;
  /** Writes a chunk to the caller. False: it has no room for more now. */
  pass(response: ServerResponse, chunk: Buffer): boolean;
  /** All chunks are passed, and the response isn't ended: an answer that isn't a stream isn't written completely. */
  passedAll(): void;
  /** The response has closed. Ends the step, then calls `done`. */
  settle(isFinished: boolean, done: () => void): void;
}

export interface CopyOptions {
  readonly dialect: Dialect;
  readonly step: StepSink;
  /** The answer's. */
  readonly status: number;
  readonly encoding: string | undefined;
  /** Called at most once. */
  onFault(cause: string, error?: unknown): void;
}

/** The copy of a stream of events. */
export class StreamCopy implements AnswerCopy {
  readonly #options: CopyOptions;
  readonly #reader: CopyReader;
  /** Where the chunks end that are on their way to the caller, counted from the answer's beginning. */
  readonly #chunkEnds: number[] = [];
  /** Events that aren't written yet. */
  readonly #waiting: { readonly reading: EventReading; readonly endOffset: number }[] = [];
  #passedBytes = 0;
  #writtenBytes = 0;
  #isClosed = false;
  #isBroken = false;
  #events = 0;
  #end: StepEnd | undefined;

  constructor(options: CopyOptions) {
    this.#options = options;
    this.#reader = openCopyReader({
      answer: options.dialect.newReader(),
      encoding: options.encoding,
      onReading: (reading, endOffset) => this.#onReading(reading, endOffset),
      onFault: ({ kind }) => options.onFault(kind),
    });
  }

  get events(): number {
    return this.#events;
  }

  get end(): StepEnd | undefined {
    return this.#end;
  }

  pass(response: ServerResponse, chunk: Buffer): boolean {
    if (this.#end !== undefined) {
      // What comes after the last event, such as the usage, is nobody's text.
      return response.write(chunk);
    }
    this.#passedBytes += chunk.length;
    this.#chunkEnds.push(this.#passedBytes);
    const hasRoom = response.write(chunk, this.#onWritten);
    if (!this.#isBroken) {
      try {
        this.#reader.write(chunk);
      } catch (error) {
        this.#break(error);
      }
    }
    return hasRoom;
  }

  passedAll(): void {}

  settle(_isFinished: boolean, done: () => void): void {
    this.#isClosed = true;
    if (this.#end !== undefined || this.#isBroken) {
      this.#reader.close();
      this.#endStep({ kind: "cut" });
      done();
      return;
    }
    this.#reader.end(() => {
      this.#deliver();
      this.#endStep({ kind: "cut" });
      done();
    });
  }

  /** One function for all writes of an answer: they call back in their order. */
  readonly #onWritten = (error?: Error | null): void => {
    const writtenBytes = this.#chunkEnds.shift() ?? 0;
    if (!(this.#isClosed || error)) {
      this.#writtenBytes = writtenBytes;
      this.#deliver();
    }
  };

  #onReading(reading: EventReading, endOffset: number): void {
    this.#events += 1;
    this.#waiting.push({ reading, endOffset });
    if (reading.callIds.length > 0) {
      this.#tell(() => this.#options.step.sawCalls(reading.callIds));
    }
    if (endOffset <= this.#writtenBytes) {
      this.#deliver();
    }
  }

  #deliver(): void {
    let first = this.#waiting[0];
    while (first !== undefined && first.endOffset <= this.#writtenBytes && this.#end === undefined) {
      this.#waiting.shift();
      const { reading } = first;
      this.#tell(() => this.#options.step.written(reading));
      if (reading.end !== undefined) {
        this.#endStep(reading.end);
      }
      first = this.#waiting[0];
    }
  }

  #endStep(end: StepEnd): void {
    if (this.#end === undefined) {
      this.#end = end;
      this.#tell(() => this.#options.step.ended(end, this.#options.status));
    }
  }

  #tell(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#break(error);
    }
  }

  #break(error: unknown): void {
    if (!this.#isBroken) {
      this.#isBroken = true;
      this.#options.onFault("bug", error);
    }
  }
}

/** The longest answer that isn't a stream that is read. A longer one passes, too. */
const WHOLE_BYTES_MAX = 8 * 1024 * 1024;

/** The copy of an answer that isn't a stream. It is written completely, or not at all. */
export class WholeCopy implements AnswerCopy {
  readonly #options: CopyOptions;
  #pieces: Pieces | undefined = new Pieces(() => true, WHOLE_BYTES_MAX);
  #reading: EventReading | undefined;
  #events = 0;
  #end: StepEnd | undefined;

  constructor(options: CopyOptions) {
    this.#options = options;
  }

  get events(): number {
    return this.#events;
  }

  get end(): StepEnd | undefined {
    return this.#end;
  }

  pass(response: ServerResponse, chunk: Buffer): boolean {
    const hasRoom = response.write(chunk);
    if (this.#pieces?.add(chunk) !== undefined) {
      this.#pieces = undefined;
      this.#options.onFault("answer_too_large");
    }
    return hasRoom;
  }

  /** Tells of tool calls before the caller can answer them. An encoded body takes longer. */
  passedAll(): void {
    if (encodingOf(this.#options.encoding) === "identity" && this.#pieces !== undefined) {
      const body = this.#pieces.take();
      this.#pieces = undefined;
      guard(this.#options, () => {
        this.#readWhole(body);
      });
    }
  }

  settle(isFinished: boolean, done: () => void): void {
    const body = isFinished ? this.#pieces?.take() : undefined;
    this.#pieces = undefined;
    const reading = isFinished ? this.#reading : undefined;
    if (reading !== undefined) {
      guard(this.#options, () => this.#write(reading));
      done();
      return;
    }
    if (body === undefined) {
      this.#endStep(isFinished ? { kind: "complete" } : { kind: "cut" });
      done();
      return;
    }
    void decodeBody(body, this.#options.encoding, WHOLE_BYTES_MAX)
      .catch(() => undefined)
      .then((decoded) => {
        guard(this.#options, () => this.#read(decoded));
        done();
      });
  }

  #read(decoded: Buffer | undefined): void {
    if (decoded === undefined) {
      this.#options.onFault("broken_encoding");
      this.#endStep({ kind: "complete" });
      return;
    }
    this.#write(this.#readWhole(decoded));
  }

  #readWhole(decoded: Buffer): EventReading {
    const { dialect, step } = this.#options;
    const reading = dialect.readAnswer(decoded);
    this.#reading = reading;
    this.#events = 1;
    if (reading.callIds.length > 0) {
      step.sawCalls(reading.callIds);
    }
    return reading;
  }

  #write(reading: EventReading): void {
    this.#options.step.written(reading);
    this.#endStep(reading.end ?? { kind: "complete" });
  }

  #endStep(end: StepEnd): void {
    this.#end = end;
    guard(this.#options, () => this.#options.step.ended(end, this.#options.status));
  }
}

/** A bug in a reader or a step must not end the process, nor the answers of other callers. */
function guard({ onFault }: CopyOptions, work: () => void): void {
  try {
    work();
  } catch (error) {
    onFault("bug", error);
  }
}
