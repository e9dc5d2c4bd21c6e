/** Generated requests over the three OpenAPI documents. `npm run fuzz` does the same for longer. */
import { expect, test } from "vitest";
import { runFuzz } from "./fuzz/index.ts";

test("generated requests get only answers that the documents describe", {
  timeout: 600_000,
}, async (context) => {
  const outcome = await runFuzz({ casesMax: 5, seed: 1, signal: context.signal, say: console.log });
  if (outcome.kind === "not_run") {
    context.skip(`schemathesis can't be had here: ${outcome.why}`);
    return;
  }
  for (const { name, cases, operations, hasPassed, report } of outcome.results) {
    console.log(`${name}: ${cases} cases of ${operations} operations`);
    expect(hasPassed, report).toBe(true);
    expect(cases, report).toBeGreaterThan(20);
  }
});
