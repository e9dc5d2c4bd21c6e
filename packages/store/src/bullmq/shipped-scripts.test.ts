import { expect, test } from "vitest";
import { asFunction, loadShippedScript } from "./shipped-scripts.ts";

test("a script of BullMQ's neither writes events nor reads how many are kept", () => {
  const shipped = loadShippedScript("moveToFinished", 14);
  const ours = asFunction(shipped);
  for (const command of ['"XADD",', '"opts.maxLenEvents")']) {
    expect(shipped).toContain(command);
    expect(ours).not.toContain(command);
  }
  expect(ours).not.toContain("XTRIM");
});
