import { expect, test } from "vitest";
import { z } from "zod";
import { faultsOf } from "./problem.ts";

const form = z.strictObject({ reason: z.string().optional() });

test("an unknown member is named if its name has the form of a member name", () => {
  const { error } = form.safeParse({ raeson: "x" });
  expect(error && faultsOf(error)).toEqual([{ path: "", message: 'Unrecognized key: "raeson"' }]);
});

test.each(["4111111111111111", "jane@example.net", "Write to me"])(
  "an unknown key such as %s, which may be user text, is not repeated",
  (written) => {
    const { error } = form.safeParse({ [written]: "x" });
    expect(error && faultsOf(error)).toEqual([{ path: "", message: "has members that are not known" }]);
  },
);
