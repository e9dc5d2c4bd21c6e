/**
 * Passes a model's answer through unchanged, and tells what of it reached the consumer. A chunk counts from the moment in which
 * it is handed over. The end of a stream comes from the model, from an error, from a consumer that leaves early, from a signal, or
 * never. After a signal the stream ends as if it were over, and no chunk is handed over, so that none goes by uncounted. It
 * doesn't fail: a server whose user left has nothing to handle.
 */
import { ASYNC_DISPOSE } from "./dispose.ts";
import { onAbort } from "./limits.ts";

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
  return "getReader" in Object(value);
}

export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return Symbol.asyncIterator in Object(value);
}

/** Where chunks come from. */
interface Source<Chunk> {
  readonly read: () => Promise<IteratorResult<Chunk>>;
  /** Nobody reads on. */
  readonly leave: (reason?: unknown) => Promise<unknown>;
}

const OVER = { done: true, value: undefined } as const;

/** The same source, with something that ends it early. */
export type Ending = <Chunk>(source: Source<Chunk>) => Source<Chunk>;

/** Reads ahead nothing: a chunk is read from the source when the consumer asks for it. */
export function watchReadable<Chunk>(
  answer: ReadableStream<Chunk>,
  watcher: AnswerWatcher<Chunk>,
  ending?: Ending,
): ReadableStream<Chunk> {
  const reader = answer.getReader();
  // At the end there is no value, which an iterator's result calls any value.
  const read = () => reader.read() as Promise<IteratorResult<Chunk>>;
  const leave = (reason: unknown) => reader.cancel(reason);
  const next = makeNext({ read, leave }, watcher, ending);
  return new ReadableStream<Chunk>(
    {
      async pull(controller) {
        const result = await next();
        result.done ? controller.close() : controller.enqueue(result.value);
      },
      cancel(reason) {
        watcher.settle();
        return leave(reason);
      },
    },
    // With the default of 1, a chunk would be read, and count, before anybody asks for it.
    { highWaterMark: 0 },
  );
}

export function watchIterable<Chunk>(
  answer: AsyncIterable<Chunk>,
  watcher: AnswerWatcher<Chunk>,
  ending?: Ending,
): AnswerStream<Chunk> {
  const chunks = answer[Symbol.asyncIterator]();
  const source = { read: async () => chunks.next(), leave: async () => chunks.return?.() };
  const leave = async (value?: unknown): Promise<IteratorResult<Chunk>> => {
    watcher.settle();
    return (await chunks.return?.(value)) ?? { done: true, value };
  };
  const stream: AnswerStream<Chunk> = {
    next: makeNext(source, watcher, ending),
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

/** Once the signal has fired, the source is over, and nobody waits for what it reads. */
export function endOnAbort(signal: AbortSignal | undefined): Ending {
  return ({ read, leave }) => ({
    leave,
    read: async () => {
      try {
        const next = signal?.aborted ? OVER : await untilAbort(read(), signal);
        if (!signal?.aborted) {
          return next;
        }
      } catch (error) {
        if (!signal?.aborted) {
          throw error;
        }
      }
      // Not awaited: a source that hangs doesn't answer. Its error helps nobody any more.
      leave(signal.reason).catch(() => {});
      return OVER;
    },
  });
}

/** Waits for a promise until the signal fires: then it rejects. The promise runs on. */
function untilAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    promise.finally(onAbort(signal, () => reject())).then(resolve, reject);
  });
}

/** Reads the next chunk for the consumer. */
function makeNext<Chunk>(
  source: Source<Chunk>,
  watcher: AnswerWatcher<Chunk>,
  ending: Ending | undefined,
): () => Promise<IteratorResult<Chunk>> {
  const { read } = ending?.(source) ?? source;
  return async () => {
    watcher.ask();
    try {
      const next = await read();
      next.done ? watcher.settle() : watcher.add(next.value);
      return next;
    } catch (error) {
      watcher.settle();
      throw error;
    }
  };
}

/** For an answer without an ad. */
export const NO_WATCHER: AnswerWatcher<unknown> = { ask: () => {}, add: () => {}, settle: () => {} };
