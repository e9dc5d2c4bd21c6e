import { expect, test } from "vitest";
import { asFunction, loadShippedScript } from "./shipped-script.ts";

test.each([
  ["moveToFinished", 14],
  ["addStandardJob", 9],
] as const)("%s neither tells of events nor asks how many are kept", (name, keyCount) => {
  const shipped = loadShippedScript(name, keyCount);
  const ofEvents = /XADD|XTRIM|opts\.maxLenEvents"\)/;
  expect(shipped).toMatch(ofEvents);
  expect(asFunction(shipped, { from: "", to: "" })).not.toMatch(ofEvents);
});
