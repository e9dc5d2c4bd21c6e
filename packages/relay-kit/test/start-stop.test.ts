/** The long-lived parts of the relay's processes keep the contract of start and stop. */
import { eventually } from "@adrelay/testkit";
import { startStopSuite } from "@adrelay/testkit/start-stop-suite";
import { expect, test } from "vitest";
import { PendingWork } from "../src/injection/waits.ts";

/** Background work isn't cancelled: a stop waits for what was added before it. */
startStopSuite("the work that goes on after answers", () => {
  const pending = new PendingWork(() => {});
  return {
    start: () =>
      pending.add(new Promise((_resolve, reject) => setImmediate(reject, new TypeError("failed")))),
    stop: () => pending.stop(),
  };
});

test("a stop waits for the work that was added before and during the stop", async () => {
  const failures: unknown[] = [];
  const pending = new PendingWork((error) => failures.push(error));
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  pending.add(first.promise);
  let hasStopped = false;
  const stopping = pending.stop().then(() => {
    hasStopped = true;
  });
  pending.add(second.promise);
  first.reject(new TypeError("failed"));
  await eventually(() => expect(failures).toHaveLength(1));
  expect(hasStopped).toBe(false);
  second.resolve();
  await stopping;
});
