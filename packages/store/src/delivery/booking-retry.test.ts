import { expect, test } from "vitest";
import type { StoreLog, StoreLogFields } from "../store-log.ts";
import { BookingRetry } from "./job-completer.ts";

const REFUSAL = new Error("READONLY You can't write against a read only replica.");

function setup({ isStopping = false, failures = [] as Error[] } = {}) {
  const events: string[] = [];
  const keep = ({ event }: StoreLogFields) => events.push(event);
  const log: StoreLog = { debug: keep, info: keep, warn: keep, error: keep };
  const retry = new BookingRetry({ log, isStopping: () => isStopping });
  let calls = 0;
  const book = async () => {
    const failure = failures[calls];
    calls += 1;
    if (failure !== undefined) {
      throw failure;
    }
    return "booked";
  };
  return { retry, book, calls: () => calls, events };
}

test("a refused booking is repeated until Redis accepts it, and logged once", async () => {
  const slotMoves = new Error("TRYAGAIN Multiple keys request during rehashing of slot");
  const { retry, book, calls, events } = setup({ failures: [REFUSAL, slotMoves] });
  expect(await retry.run(book)).toBe("booked");
  expect(calls()).toBe(3);
  expect(events).toEqual(["booking_refused", "booking_resumed"]);
});

test("a booking that Redis accepts says nothing of another one that is still refused", async () => {
  const { retry, book, events } = setup({ failures: [REFUSAL] });
  const refused = retry.run(book);
  await retry.run(() => Promise.resolve("booked"));
  expect(events).toEqual(["booking_refused"]);
  await refused;
  expect(events).toEqual(["booking_refused", "booking_resumed"]);
});

test("a permanent error is raised immediately, also after a refusal", async () => {
  const fault = new Error("ERR user_script:1: no such thing");
  const first = setup({ failures: [fault] });
  await expect(first.retry.run(first.book)).rejects.toBe(fault);
  expect(first.calls()).toBe(1);
  const second = setup({ failures: [REFUSAL, fault] });
  await expect(second.retry.run(second.book)).rejects.toBe(fault);
  expect(second.calls()).toBe(2);
});

test("a process that stops doesn't repeat a booking", async () => {
  const { retry, book, calls } = setup({ isStopping: true, failures: [REFUSAL] });
  await expect(retry.run(book)).rejects.toBe(REFUSAL);
  expect(calls()).toBe(1);
});
