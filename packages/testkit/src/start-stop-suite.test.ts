import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { type LongLivedPart, START_STOP_CASES, startStopSuite, watch } from "./start-stop-suite.ts";

/** A loop that keeps the contract; its start takes a few turns of the event loop. */
class Loop {
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  #starting: Promise<void> | undefined;

  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#starting;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  isRunning(): boolean {
    return this.#timer !== undefined;
  }

  async #start(): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) {
      await nextTurn();
    }
    if (!this.#isStopped) {
      this.#timer = setInterval(() => {}, 1000);
    }
  }
}

startStopSuite("a loop", () => new Loop(), { isRunning: (loop) => loop.isRunning() });

/** Each part breaks the contract in one way. Its key is the case that must fail. */
const BROKEN: Readonly<Record<keyof typeof START_STOP_CASES, () => LongLivedPart & { running: number }>> = {
  "a stop ends what a start began": () => ({
    running: 0,
    start() {
      this.running = 1;
    },
    stop() {},
  }),
  "a stop before the start resolves": () => {
    let onStart = () => {};
    const started = new Promise<void>((resolve) => {
      onStart = resolve;
    });
    return {
      running: 0,
      start() {
        this.running = 1;
        onStart();
      },
      async stop() {
        await started;
        this.running = 0;
      },
    };
  },
  "a second stop resolves": () => ({
    running: 0,
    start() {
      this.running = 1;
    },
    stop() {
      if (this.running === 0) {
        throw new TypeError("it does not run");
      }
      this.running = 0;
    },
  }),
  "concurrent stops all resolve": () => {
    let isStopping = false;
    return {
      running: 0,
      start() {
        this.running = 1;
      },
      async stop() {
        if (isStopping) {
          await new Promise(() => {});
        }
        isStopping = true;
        await nextTurn();
        isStopping = false;
        this.running = 0;
      },
    };
  },
  "a stop during the start leaves nothing running": () => ({
    running: 0,
    async start() {
      await nextTurn();
      this.running = 1;
    },
    stop() {
      this.running = 0;
    },
  }),
  "a start after a stop leaves nothing running": () => ({
    running: 0,
    start() {
      this.running = 1;
    },
    stop() {
      this.running = 0;
    },
  }),
  "one stop ends what two starts began": () => ({
    running: 0,
    start() {
      this.running += 1;
    },
    stop() {
      this.running = Math.max(0, this.running - 1);
    },
  }),
};

test.each(Object.entries(START_STOP_CASES))(
  "a part that breaks '%s' fails that case",
  async (title, check) => {
    const makeBroken = Object.entries(BROKEN).find(([name]) => name === title)?.[1];
    if (makeBroken === undefined) {
      throw new TypeError(`no broken part for ${title}`);
    }
    const options = { isRunning: ({ running }: { running: number }) => running > 0, timeoutMs: 50 };
    await expect(check(async () => watch(makeBroken(), options))).rejects.toThrow();
  },
);

test("a stop that never settles is reported with its time limit", async () => {
  const hanging = { start: () => {}, stop: () => new Promise(() => {}) };
  await expect(watch(hanging, { timeoutMs: 20 }).stop()).rejects.toThrow("stop did not settle within 20 ms");
});
