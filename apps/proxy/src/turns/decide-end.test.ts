import type { StepEnd } from "@adrelay/core";
import { expect, test } from "vitest";
import { decideEnd } from "./decide-end.ts";

const NOTHING = { wroteText: false, wroteCalls: false, status: 200 };
const TEXT = { ...NOTHING, wroteText: true };
const CALLS = { ...NOTHING, wroteCalls: true };
const BOTH = { ...TEXT, ...CALLS, wroteText: true };

const ALL_WRITTEN = [NOTHING, TEXT, CALLS, BOTH];
const BROKEN: readonly StepEnd["kind"][] = ["cut", "failed"];
const kindOf = (end: StepEnd["kind"], facts: typeof NOTHING | (typeof NOTHING & { status: undefined })) =>
  decideEnd({ end: { kind: end }, ...facts });

test("a complete step settles its turn, whatever was written", () => {
  for (const facts of ALL_WRITTEN) {
    expect(kindOf("complete", facts)).toEqual({ kind: "settle", outcome: "complete" });
  }
});

test("a step with tool calls waits for its next step", () => {
  for (const facts of ALL_WRITTEN) {
    expect(kindOf("continues", facts)).toEqual({ kind: "wait_for_next_step", outcome: "complete" });
  }
});

test("a broken step waits for the next step if a tool call was written", () => {
  for (const outcome of BROKEN) {
    expect(kindOf(outcome, CALLS)).toEqual({ kind: "wait_for_next_step", outcome });
    expect(kindOf(outcome, BOTH)).toEqual({ kind: "wait_for_next_step", outcome });
  }
});

test("a broken step settles its turn if only text was written", () => {
  for (const outcome of BROKEN) {
    expect(kindOf(outcome, TEXT)).toEqual({ kind: "settle", outcome });
  }
});

test.each([undefined, 200, 408, 409, 429, 500, 502, 503, 529])(
  "a broken step with status %s and nothing written waits for a retry",
  (status) => {
    for (const outcome of BROKEN) {
      const decided = decideEnd({ end: { kind: outcome }, ...NOTHING, status });
      expect(decided).toEqual({ kind: "wait_for_retry", outcome });
    }
  },
);

test.each([400, 401, 403, 404, 413, 422])("a refusal with status %s settles its turn", (status) => {
  const decided = decideEnd({ end: { kind: "failed" }, ...NOTHING, status });
  expect(decided).toEqual({ kind: "settle", outcome: "failed" });
});
