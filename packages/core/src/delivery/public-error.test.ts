import { expect, test } from "vitest";
import { publicErrorOf } from "./public-error.ts";

const answered = (body: unknown) => ({ kind: "answered", status: 422, body, retryAfter: undefined }) as const;

test.each(["validation_failed", "E-1042", "a.b", "x".repeat(64)])(
  "the provider's code %s is told as it is",
  (code) => {
    expect(publicErrorOf(answered({ code, detail: "free text" }))).toBe(code);
  },
);

test.each(["", "two words", "x".repeat(65), "läuft", "a\nb", "<b>", 42, null, ["a"], undefined])(
  "the code %j may hold what a user wrote and is not told",
  (code) => {
    expect(publicErrorOf(answered({ code }))).toBeUndefined();
  },
);

test.each([undefined, null, "code", 1, [], ["code"]])("a body %j has no code", (body) => {
  expect(publicErrorOf(answered(body))).toBeUndefined();
});

test("a call without an answer has no code", () => {
  expect(publicErrorOf({ kind: "failed", stage: "after_send", code: "timeout" })).toBeUndefined();
});
