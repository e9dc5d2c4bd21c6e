import { publisherIdSchema } from "@adrelay/contract";
import { expect, test } from "vitest";
import { LateCalls } from "./late-calls.ts";

const busy = publisherIdSchema.parse("busy");
const other = publisherIdSchema.parse("other");
const third = publisherIdSchema.parse("third");

function setup(max: number) {
  const late = new LateCalls(max);
  const givenUp: string[] = [];
  const callOf = (name: string) => ({ giveUp: () => void givenUp.push(name) });
  return { late, givenUp, callOf };
}

test("a publisher with many late calls loses its own oldest ones, and never those of others", () => {
  const { late, givenUp, callOf } = setup(3);
  late.add(other, callOf("other 1"));
  for (const name of ["busy 1", "busy 2", "busy 3", "busy 4"]) {
    late.add(busy, callOf(name));
  }
  expect(givenUp).toEqual(["busy 1", "busy 2"]);
  late.add(third, callOf("third 1"));
  expect(givenUp).toEqual(["busy 1", "busy 2", "busy 3"]);
});

test("a call that has ended makes room once", () => {
  const { late, givenUp, callOf } = setup(2);
  const [first, second] = [callOf("1"), callOf("2")];
  late.add(busy, first);
  late.add(busy, second);
  late.remove(busy, first);
  late.remove(busy, first);
  late.add(busy, callOf("3"));
  expect(givenUp).toEqual([]);
  late.add(busy, callOf("4"));
  expect(givenUp).toEqual(["2"]);
});
