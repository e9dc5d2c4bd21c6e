import { pino } from "pino";
import { expect, test } from "vitest";
import { OVERDUE, withDeadline } from "./deadline.ts";
import { Lifecycle } from "./lifecycle.ts";

const silent = pino({ level: "silent" });

test("parts stop once, in reverse order, even if stop is called several times", async () => {
  const lifecycle = new Lifecycle(silent);
  const stopped: string[] = [];
  lifecycle.onStop("first", () => void stopped.push("first"));
  lifecycle.onStop("second", async () => void stopped.push("second"));
  await Promise.all([lifecycle.stop(1000), lifecycle.stop(1000)]);
  await lifecycle.stop(1000);
  expect(stopped).toEqual(["second", "first"]);
});

test("a stop before any part is registered resolves", async () => {
  await expect(new Lifecycle(silent).stop(10)).resolves.toBeUndefined();
});

test("a part that hangs or throws does not prevent the others from stopping", async () => {
  const lifecycle = new Lifecycle(silent);
  const reached: string[] = [];
  lifecycle.onStop("last", () => void reached.push("last"));
  lifecycle.onStop("throws", () => Promise.reject(new TypeError("no")));
  lifecycle.onStop("hangs", () => new Promise(() => {}));
  await lifecycle.stop(20);
  expect(reached).toEqual(["last"]);
});

test("work that fails after its deadline is overdue, and the failure is swallowed", async () => {
  const late = new Promise((_, reject) => setTimeout(() => reject(new TypeError("late")), 30));
  await expect(withDeadline(late, 5)).resolves.toBe(OVERDUE);
  await expect(withDeadline(Promise.resolve(7), 1000)).resolves.toBe(7);
  await late.catch(() => {});
});
