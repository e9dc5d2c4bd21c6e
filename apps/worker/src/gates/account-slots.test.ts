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
  const slots = new AccountSlots(1);
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
