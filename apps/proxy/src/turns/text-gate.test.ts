import { expect, test } from "vitest";
import { TextGate } from "./text-gate.ts";

/** Works that end when they are told to, and which of them have begun. */
function setup(maxBytes: number) {
  const gate = new TextGate(maxBytes);
  const begun: string[] = [];
  const start = (name: string, bytes: number) => {
    const ended = Promise.withResolvers<string>();
    const result = gate.run(bytes, () => {
      begun.push(name);
      return ended.promise;
    });
    return { result, end: () => ended.resolve(name), fail: () => ended.reject(new TypeError(name)) };
  };
  return { begun, start };
}

test("a work that finds room begins before its call returns", () => {
  const { begun, start } = setup(10);
  start("a", 6);
  start("b", 4);
  expect(begun).toEqual(["a", "b"]);
});

test("a work without room waits, and those behind it wait as well", async () => {
  const { begun, start } = setup(10);
  const a = start("a", 6);
  const b = start("b", 5);
  const c = start("c", 1);
  expect(begun).toEqual(["a"]);
  a.end();
  expect(await a.result).toBe("a");
  b.end();
  c.end();
  expect(await Promise.all([b.result, c.result])).toEqual(["b", "c"]);
  expect(begun).toEqual(["a", "b", "c"]);
});

test("a text that is longer than the bound goes alone, and a failure makes room", async () => {
  const { begun, start } = setup(10);
  const long = start("long", 50);
  const next = start("next", 1);
  expect(begun).toEqual(["long"]);
  long.fail();
  await expect(long.result).rejects.toThrow("long");
  next.end();
  expect(await next.result).toBe("next");
});
