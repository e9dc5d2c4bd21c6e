import { expect, test } from "vitest";
import { containerMemorySettings, imageMemorySettings } from "./image-memory.ts";

test("the image bounds Node's heap and its allocator, and lets several look-ups of hosts run", () => {
  expect(imageMemorySettings()).toEqual({
    NODE_OPTIONS: "--max-semi-space-size=4 --max-old-space-size-percentage=40",
    MALLOC_ARENA_MAX: "2",
    MALLOC_MMAP_THRESHOLD_: "65536",
    MALLOC_TRIM_THRESHOLD_: "131072",
    UV_THREADPOOL_SIZE: "16",
  });
});

test("settings of the environment win over those of the image", () => {
  const env = { NODE_OPTIONS: "--max-semi-space-size=16", MALLOC_ARENA_MAX: "8" };
  expect(imageMemorySettings(env)).toMatchObject({
    NODE_OPTIONS: expect.stringMatching(/^--max-semi-space-size=4 .* --max-semi-space-size=16$/),
    MALLOC_ARENA_MAX: "8",
  });
});

test("without a container a process gets the heap that it would have in one", () => {
  expect(containerMemorySettings(256)["NODE_OPTIONS"]).toBe(
    "--max-semi-space-size=4 --max-old-space-size=102",
  );
});
