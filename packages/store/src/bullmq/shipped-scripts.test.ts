import { expect, test } from "vitest";
import { asFunction, loadShippedScript } from "./shipped-scripts.ts";

test.each([
  ["moveToFinished", 14],
  ["addStandardJob", 9],
] as const)("%s neither writes events nor reads how many are kept", (name, keyCount) => {
  const shipped = loadShippedScript(name, keyCount);
  const ours = asFunction(shipped);
  for (const command of ['"XADD",', '"opts.maxLenEvents")']) {
    expect(shipped).toContain(command);
    expect(ours).not.toContain(command);
  }
  expect(ours).not.toContain("XTRIM");
});
