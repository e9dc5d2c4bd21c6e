import { describe, expect, it } from "vitest";
import { addTallies, formatTally, NOTHING } from "./tally.ts";

describe("the last line", () => {
  it("counts what passed and failed, and names skips only if there are any", () => {
    expect(formatTally({ passed: 3, failed: 0, skipped: 0 })).toBe("3 passed, 0 failed");
    expect(formatTally({ passed: 3, failed: 1, skipped: 2 })).toBe("3 passed, 1 failed, 2 skipped");
  });

  it("adds the checks up", () => {
    const one = { passed: 1, failed: 2, skipped: 3 };
    expect(addTallies(addTallies(NOTHING, one), one)).toEqual({ passed: 2, failed: 4, skipped: 6 });
  });
});
