import { expect, test } from "vitest";
import { sizeBetween } from "./sizes.ts";

const parsed = (text: string) => sizeBetween(1024, 64 * 1024 ** 3).safeParse(text).data;

test.each([
  ["1024", 1024],
  ["1KB", 1024],
  ["64MB", 67_108_864],
  ["64 mb", 67_108_864],
  ["1.5GB", 1_610_612_736],
])("the size %j is %j bytes", (text, bytes) => {
  expect(parsed(text)).toBe(bytes);
});

test.each(["", "MB", "-1MB", "5%", "off", "64M", "1e9", "1023", "65GB"])(
  "%j is refused as a size",
  (text) => {
    expect(parsed(text)).toBeUndefined();
  },
);
