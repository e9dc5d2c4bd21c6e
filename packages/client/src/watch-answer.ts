/**
 * Passes a model's answer through unchanged, and tells what of it reached the consumer. A chunk counts from the moment in which
 * it is handed over. The end of a stream comes from the model, from an error, from a consumer that leaves early, or never.
 */
import { ASYNC_DISPOSE } from "./dispose.ts";

/** Told of what reaches the consumer. */
export interface AnswerWatcher<Chunk> {
  /** The consumer asked for the next chunk. */
  ask(): void;
  add(chunk: Chunk): void;
  settle(): void;
}

/** A stream of chunks that also ends with `await using`. */
export interface AnswerStream<Chunk> extends AsyncIterableIterator<Chunk>, AsyncDisposable {}

/** What an answer consists of: the chunks of a stream, or itself. */
export type ChunkOf<Answer> =
  Answer extends ReadableStream<infer Chunk>
    ? Chunk
    : Answer extends AsyncIterable<infer Chunk>
      ? Chunk
      : Answer;

/** An answer as it comes back: a stream as a stream of the same chunks, anything else as it is. */
export type Watched<Answer> =
  Answer extends ReadableStream<infer Chunk>
    ? ReadableStream<Chunk>
    : Answer extends AsyncIterable<infer Chunk>
      ? AnswerStream<Chunk>
      : Answer;

export function isReadableStream(value: unknown): value is ReadableStream<unknown> {
  return typeof value === "object" && value !== null && "getReader" in value;
}

export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

/** Reads ahead nothing: a chunk is read from the source when the consumer asks for it. */
export function watchReadable<Chunk>(
  source: ReadableStream<Chunk>,
  watcher: AnswerWatcher<Chunk>,
): ReadableStream<Chunk> {
  const reader = source.getReader();
  return new ReadableStream<Chunk>(
    {
      async pull(controller) {
        watcher.ask();
        try {
          const { done, value } = await reader.read();
          if (done) {
            watcher.settle();
            controller.close();
          } else {
            watcher.add(value);
            controller.enqueue(value);
          }
        } catch (error) {
          watcher.settle();
          controller.error(error);
        }
      },
      cancel(reason) {
        watcher.settle();
        return reader.cancel(reason);
      },
    },
    // With the default of 1, a chunk would be read, and count, before anybody asks for it.
    { highWaterMark: 0 },
  );
}

export function watchIterable<Chunk>(
  source: AsyncIterable<Chunk>,
  watcher: AnswerWatcher<Chunk>,
): AnswerStream<Chunk> {
  const chunks = source[Symbol.asyncIterator]();
  const next = async (): Promise<IteratorResult<Chunk>> => {
    watcher.ask();
    try {
      const result = await chunks.next();
      if (result.done === true) {
        watcher.settle();
      } else {
        watcher.add(result.value);
      }
      return result;
    } catch (error) {
      watcher.settle();
      throw error;
    }
  };
  const leave = async (value?: unknown): Promise<IteratorResult<Chunk>> => {
    watcher.settle();
    return (await chunks.return?.(value)) ?? { done: true, value };
  };
  const stream: AnswerStream<Chunk> = {
    next,
    return: leave,
    throw: async (error) => {
      watcher.settle();
      if (chunks.throw === undefined) {
        throw error;
      }
      return chunks.throw(error);
    },
    [Symbol.asyncIterator]: () => stream,
    [ASYNC_DISPOSE]: async () => void (await leave()),
  };
  return stream;
}

/** For an answer without an ad. */
export const NO_WATCHER: AnswerWatcher<unknown> = { ask: () => {}, add: () => {}, settle: () => {} };
