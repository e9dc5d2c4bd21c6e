import { expect, test } from "vitest";
import { softLabelOf } from "./soft-labels.ts";

const teacherOf = (needs: readonly number[], none: number, grief: number) => ({
  read: () => ({
    needs: Float32Array.from(needs),
    none,
    topics: new Map([["grief", grief]]),
    meaning: new Float32Array(),
  }),
});

test("a soft label is the mean of the teachers, in the order of the classes, without unlikely ones", () => {
  const { classes, probabilities } = softLabelOf("a text", [
    teacherOf([0.5, 0], 0.4995, 0.0005),
    teacherOf([0, 0], 0.9995, 0.0005),
  ]);
  expect([...classes]).toEqual([0, 2]);
  expect([...probabilities]).toEqual([expect.closeTo(0.2501, 4), expect.closeTo(0.7499, 4)]);
});

test("the last classes are the topics", () => {
  const { classes, probabilities } = softLabelOf("a text", [teacherOf([0, 0], 0, 1)]);
  expect([...classes]).toEqual([3]);
  expect([...probabilities]).toEqual([1]);
});
