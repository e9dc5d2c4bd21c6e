import { expect, test } from "vitest";
import { checkMemory } from "./redis-checks.ts";

const MIB = 1024 * 1024;

test.each([
  [true, "all", "ok", /^96\.0 MiB used, 96 % of maxmemory$/],
  [true, "none", "fail", /^96\.0 MiB used, 96 % of maxmemory: acknowledgments get 503/],
  [false, "all", "warn", /96 % of the machine's memory; no maxmemory is set/],
  [false, "known", "warn", /machine's memory: acknowledgments of unknown ids get 503; no maxmemory is set/],
  [false, "none", "fail", /machine's memory: acknowledgments get 503.*; no maxmemory is set/],
] as const)(
  "with maxmemory %s, and if intake accepts %s, the memory is %s",
  (hasMaxmemory, accepts, status, detail) => {
    const memory = { usedBytes: 96 * MIB, limitBytes: 100 * MIB, hasMaxmemory };
    expect(checkMemory({ memory }, { accepts })).toEqual({
      name: "redis_memory",
      status,
      detail: expect.stringMatching(detail),
    });
  },
);
