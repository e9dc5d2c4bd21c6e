/** How the calls of one turn of the event loop are carried out together. */
export interface TurnBatch<Request, Result> {
  /** Carries them out; one reply for each, in their order. If it rejects, so does every call. */
  run(requests: readonly Request[]): Promise<readonly unknown[]>;
  /** What a reply means; if it throws, this one call rejects. */
  read(reply: unknown, request: Request): Result;
  sizeOf(request: Request): number;
  /** A batch goes out early once it has this many calls, or reaches this size. */
  readonly countMax: number;
  readonly sizeMax: number;
}

interface Pending<Request, Result> extends PromiseWithResolvers<Result> {
  readonly request: Request;
}

/**
 * Gathers the calls of one turn of the event loop. A lone call waits for nothing but the end of its turn, and calls of a
 * later turn don't wait for those of an earlier one.
 */
export function batchByTurn<Request, Result>(
  batch: TurnBatch<Request, Result>,
): (request: Request) => Promise<Result> {
  let waiting: Pending<Request, Result>[] = [];
  let size = 0;
  const flush = () => {
    if (waiting.length > 0) {
      void runAll(batch, waiting);
      waiting = [];
      size = 0;
    }
  };
  return (request) => {
    if (waiting.length === 0) {
      setImmediate(flush);
    }
    const pending = { request, ...Promise.withResolvers<Result>() };
    waiting.push(pending);
    size += batch.sizeOf(request);
    if (waiting.length >= batch.countMax || size >= batch.sizeMax) {
      flush();
    }
    return pending.promise;
  };
}

async function runAll<Request, Result>(
  { run, read }: TurnBatch<Request, Result>,
  calls: readonly Pending<Request, Result>[],
): Promise<void> {
  try {
    const replies = await run(calls.map(({ request }) => request));
    for (const [at, call] of calls.entries()) {
      settle(call, () => read(replies[at], call.request));
    }
  } catch (error) {
    for (const { reject } of calls) {
      reject(error);
    }
  }
}

function settle<Result>({ resolve, reject }: PromiseWithResolvers<Result>, read: () => Result): void {
  try {
    resolve(read());
  } catch (error) {
    reject(error);
  }
}
