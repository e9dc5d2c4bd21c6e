import { expect, test } from "vitest";
import { freePort } from "./ports.ts";

test("a thousand parallel calls return a thousand different ports", async () => {
  const ports = await Promise.all(Array.from({ length: 1000 }, freePort));
  expect(new Set(ports).size).toBe(1000);
});
