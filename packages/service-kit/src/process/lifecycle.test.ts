import { pino } from "pino";
import { expect, test } from "vitest";
import { Lifecycle } from "./lifecycle.ts";
import { OVERDUE, withDeadline } from "./with-deadline.ts";

const silent = pino({ level: "silent" });

test("parts stop in reverse order, once, however often stop is called", async () => {
  const lifecycle = new Lifecycle(silent);
  const stopped: string[] = [];
  lifecycle.onStop("first", () => void stopped.push("first"));
  lifecycle.onStop("second", async () => void stopped.push("second"));
  await Promise.all([lifecycle.stop(1000), lifecycle.stop(1000)]);
  await lifecycle.stop(1000);
  expect(stopped).toEqual(["second", "first"]);
});

test("stopping before anything was registered is fine", async () => {
  await expect(new Lifecycle(silent).stop(10)).resolves.toBeUndefined();
});

test("a part that hangs or throws does not keep the others from stopping", async () => {
  const lifecycle = new Lifecycle(silent);
  const reached: string[] = [];
  lifecycle.onStop("last", () => void reached.push("last"));
  lifecycle.onStop("throws", () => Promise.reject(new TypeError("no")));
  lifecycle.onStop("hangs", () => new Promise(() => {}));
  await lifecycle.stop(20);
  expect(reached).toEqual(["last"]);
});

test("work that is not done by the deadline is overdue and its failure stays quiet", async () => {
  const late = new Promise((_, reject) => setTimeout(() => reject(new TypeError("late")), 30));
  await expect(withDeadline(late, 5)).resolves.toBe(OVERDUE);
  await expect(withDeadline(Promise.resolve(7), 1000)).resolves.toBe(7);
  await late.catch(() => {});
});
