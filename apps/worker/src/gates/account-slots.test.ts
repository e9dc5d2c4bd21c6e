import { expect, test } from "vitest";
import { AccountSlots } from "./account-slots.ts";

test("no more slots are given than the limit, and a freed one goes to who waits longest", async () => {
  const slots = new AccountSlots(2);
  const [first, second] = [await slots.take(), await slots.take()];
  expect(slots.room).toBe(0);
  const order: string[] = [];
  const third = slots.take().then((free) => {
    order.push("third");
    return free;
  });
  const fourth = slots.take().then(() => order.push("fourth"));
  first?.();
  await third;
  expect(order).toEqual(["third"]);
  second?.();
  await fourth;
  expect(order).toEqual(["third", "fourth"]);
});

test("a slot that is freed twice is freed once", async () => {
  const slots = new AccountSlots(1, () => 0);
  const free = await slots.take();
  free?.();
  free?.();
  expect(slots.room).toBe(1);
});

test("after a wait in vain nobody waits until a slot is freed", async () => {
  const slots = new AccountSlots(1);
  const free = await slots.take();
  expect(await slots.take()).toBeUndefined();
  // Answered in this turn of the event loop: no timer was set.
  expect(await Promise.race([slots.take(), Promise.resolve("waits")])).toBeUndefined();
  free?.();
  expect(await slots.take()).toBeDefined();
});

test("nobody waits for slots that a slow provider holds for longer than the wait", async () => {
  let nowMs = 0;
  const slots = new AccountSlots(2, () => nowMs);
  await slots.take();
  for (let held = 0; held < 3; held += 1) {
    const free = await slots.take();
    nowMs += 1000;
    free?.();
  }
  await slots.take();
  // Two slots, each held for about half a second by now: the next one is free in time, the one after it isn't.
  const first = slots.take();
  expect(await Promise.race([slots.take(), Promise.resolve("waits")])).toBeUndefined();
  expect(await Promise.race([first, Promise.resolve("waits")])).toBe("waits");
});

test("there is room for what a quick provider's slots will take soon, within a bound", async () => {
  let nowMs = 0;
  const slots = new AccountSlots(2, () => nowMs);
  const holdFor = async (heldMs: number) => {
    const free = await slots.take();
    nowMs += heldMs;
    free?.();
  };
  expect(slots.room).toBe(2);
  // A slot is held for 40 ms on average from now on, so each takes two and a half attempts in 100 ms.
  await holdFor(200);
  expect(slots.room).toBe(5);
  await slots.take();
  expect(slots.room).toBe(4);
  for (let quick = 0; quick < 20; quick += 1) {
    await holdFor(1);
  }
  expect(slots.room).toBe(2 * 5 - 1);
});
