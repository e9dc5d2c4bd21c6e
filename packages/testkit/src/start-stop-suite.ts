/**
 * Test cases that every long-lived part must pass. They keep service-kit's contract:
 *
 * 1. Stop is idempotent, and legal before start.
 * 2. All stops resolve, also those that run concurrently. After a stop has resolved, nothing runs any more.
 * 3. A stopped part stays stopped: a start after a stop, or a start that the stop interrupts, leaves nothing running.
 * 4. Several starts need only one stop.
 *
 * A start may reject where it has nothing to start (a second one, one after a stop). A stop may never reject.
 * The module imports vitest, so it has its own entry point and is not part of the package's index.
 */
import { strict as assert } from "node:assert";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { describe, test } from "vitest";

/** A part with a life of its own, such as a listener, a loop or a pool. */
export interface LongLivedPart {
  start(): unknown;
  stop(): unknown;
}

/** How to watch the part. */
export interface StartStopOptions<Part> {
  /** Whether the part does anything now. Without it the suite checks only that each call settles. */
  readonly isRunning?: (part: Part) => boolean | Promise<boolean>;
  /** How long one start or stop may take, and a started part to show that it runs; 5 s if not given. */
  readonly timeoutMs?: number;
}

/**
 * Registers the cases for a part. `make` returns a fresh part, not started yet; it runs once or more per case.
 * A part whose stop takes arguments, or that starts when it is constructed, is wrapped: `stop: () => part.stop(1000)`,
 * `start: () => {}`.
 */
export function startStopSuite<Part extends LongLivedPart>(
  name: string,
  make: () => Part | Promise<Part>,
  options: StartStopOptions<Part> = {},
): void {
  describe(`${name} starts and stops`, () => {
    for (const [title, check] of Object.entries(START_STOP_CASES)) {
      test(title, () => check(async () => watch(await make(), options)));
    }
  });
}

/** A part under test: each call is bounded in time. */
interface WatchedPart {
  /** Settles once the start has resolved or rejected. */
  start(): Promise<"resolved" | "rejected">;
  stop(): Promise<void>;
  /** Throws if the part doesn't run (does run). Does nothing if the part can't be watched. */
  assertRuns(): Promise<void>;
  assertRests(): Promise<void>;
}

type Check = (make: () => Promise<WatchedPart>) => Promise<void>;

const CONCURRENT_STOPS = 10;
/** A stop meets a start after each of so many turns of the event loop. */
const TURNS_MAX = 10;
const LOOK_MS = 10;

/** The cases, for the suite's own test. */
export const START_STOP_CASES = {
  "a stop ends what a start began": async (make) => {
    const part = await make();
    assert.equal(await part.start(), "resolved");
    await part.assertRuns();
    await part.stop();
    await part.assertRests();
  },
  "a stop before the start resolves": async (make) => {
    const part = await make();
    await part.stop();
    await part.assertRests();
  },
  "a second stop resolves": async (make) => {
    const part = await make();
    await part.start();
    await part.stop();
    await part.stop();
    await part.assertRests();
  },
  "concurrent stops all resolve": async (make) => {
    const part = await make();
    await part.start();
    await Promise.all(Array.from({ length: CONCURRENT_STOPS }, () => part.stop()));
    await part.assertRests();
  },
  "a stop during the start leaves nothing running": async (make) => {
    for (let turns = 0; turns < TURNS_MAX; turns += 1) {
      const part = await make();
      const starting = part.start();
      for (let turn = 0; turn < turns; turn += 1) {
        await nextTurn();
      }
      await part.stop();
      await starting;
      await part.assertRests();
    }
  },
  "a start after a stop leaves nothing running": async (make) => {
    const part = await make();
    await part.start();
    await part.stop();
    await part.start();
    await part.assertRests();
    await part.stop();
  },
  "one stop ends what two starts began": async (make) => {
    const part = await make();
    await Promise.all([part.start(), part.start()]);
    await part.stop();
    await part.assertRests();
  },
} as const satisfies Readonly<Record<string, Check>>;

/** Bounds a part's calls, and turns what a check can't use into an AssertionError. */
export function watch<Part extends LongLivedPart>(
  part: Part,
  { isRunning, timeoutMs = 5000 }: StartStopOptions<Part>,
): WatchedPart {
  return {
    start: () =>
      within(timeoutMs, "start", async () => {
        try {
          await part.start();
          return "resolved";
        } catch {
          return "rejected";
        }
      }),
    stop: () =>
      within(timeoutMs, "stop", async () => {
        await part.stop();
      }),
    // On a busy machine a part's first sign of life takes a while.
    assertRuns: async () => {
      const endMs = performance.now() + timeoutMs;
      while (isRunning !== undefined && !(await isRunning(part))) {
        assert.ok(performance.now() < endMs, "the part does not run after its start");
        await pause(LOOK_MS);
      }
    },
    assertRests: async () => assert.ok(!(await isRunning?.(part)), "the part still runs after its stop"),
  };
}

async function within<T>(timeoutMs: number, what: string, call: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new assert.AssertionError({ message: `${what} did not settle within ${timeoutMs} ms` }));
    }, timeoutMs);
  });
  try {
    return await Promise.race([call(), overdue]);
  } finally {
    clearTimeout(timer);
  }
}
