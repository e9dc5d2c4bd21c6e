import fc from "fast-check";
import { expect, test } from "vitest";
import { classifyInjection, FALLBACK_REASONS } from "./injection.ts";

const ID = "0b0f7a52-5c1c-4a0b-9a55-2f5a5f7b8f10";
const filled = {
  ad_request_id: ID,
  ad_response_id: ID.toUpperCase(),
  status: "ok",
  success: true,
  execution_time_ms: 1.5,
  enhanced_prompt: "p",
  product_name: "n",
};
const unfilled = { ...filled, status: "x", success: false, enhanced_prompt: null, product_name: null };
const answer = (status: number, body?: unknown) =>
  classifyInjection({ kind: "answered", status, body, retryAfter: undefined });

test.each([
  [200, filled, { kind: "enhancement", outcome: "ok", adResponseId: ID }],
  [201, unfilled, { kind: "enhancement", outcome: "rejected", adResponseId: ID }],
  [202, unfilled, { kind: "enhancement", outcome: "no_fill", adResponseId: ID }],
  [
    200,
    { ad_response_id: ID, enhanced_prompt: "p" },
    { kind: "enhancement", outcome: "ok", adResponseId: ID },
  ],
  [202, {}, { kind: "enhancement", outcome: "no_fill", adResponseId: undefined }],
  [201, { ad_response_id: 7 }, { kind: "enhancement", outcome: "rejected", adResponseId: undefined }],
  [
    202,
    { enhanced_prompt: "as it was" },
    { kind: "enhancement", outcome: "no_fill", adResponseId: undefined },
  ],
  [204, undefined, { kind: "fallback", reason: "unexpected_status" }],
  [302, undefined, { kind: "fallback", reason: "unexpected_status" }],
  [400, { code: "validation_failed" }, { kind: "callers_fault" }],
  [400, undefined, { kind: "fallback", reason: "unexpected_status" }],
  [401, undefined, { kind: "fallback", reason: "unauthorized" }],
  [403, undefined, { kind: "fallback", reason: "unauthorized" }],
  [404, undefined, { kind: "fallback", reason: "unexpected_status" }],
  [409, { code: "validation_failed" }, { kind: "callers_fault" }],
  [409, undefined, { kind: "fallback", reason: "unexpected_status" }],
  [422, { code: "validation_failed" }, { kind: "callers_fault" }],
  [422, undefined, { kind: "fallback", reason: "unexpected_status" }],
  [429, undefined, { kind: "fallback", reason: "rate_limited" }],
  [500, undefined, { kind: "fallback", reason: "provider_error" }],
])("an injection answered %d with %j is %j", (status, body, expected) => {
  expect(answer(status, body)).toMatchObject(expected);
});

test.each([
  [200, unfilled, "enhanced_prompt must be a string; success must not be false in a 200"],
  [200, { ...filled, enhanced_prompt: "" }, "enhanced_prompt must not be empty"],
  [200, { ...filled, ad_response_id: "1" }, "ad_response_id must be a UUID"],
  [200, {}, "ad_response_id must be a UUID; enhanced_prompt must be a string"],
  [200, "<html>", "body must be a JSON object"],
  [200, undefined, "body must be a JSON object"],
  [200, [filled], "body must be a JSON object"],
  [202, filled, "success must not be true in a 201 or 202"],
  [201, undefined, "body must be a JSON object"],
])("an injection answered %d with %j is malformed: %s", (status, body, answerFault) => {
  expect(answer(status, body)).toEqual({ kind: "fallback", reason: "malformed_answer", answerFault });
});

const memberNames = ["ad_request_id", "status", "success", "execution_time_ms", "product_name"] as const;

test("members that the relay doesn't use may be absent or have any value", () => {
  const others = fc.dictionary(fc.constantFrom(...memberNames), fc.jsonValue());
  fc.assert(
    fc.property(others, ({ success = true, ...rest }) => {
      const members = { ...rest, ...(success === false ? {} : { success }) };
      const body = { ad_response_id: ID, enhanced_prompt: "p", ...members };
      expect(answer(200, body)).toMatchObject({ kind: "enhancement", outcome: "ok", adResponseId: ID });
    }),
  );
});

test.each([
  ["timeout", "timeout"],
  ["unreachable", "unreachable"],
  ["dns_failed", "unreachable"],
  ["certificate_invalid", "unreachable"],
  ["proxy_failed", "unreachable"],
  ["connection_lost", "connection_lost"],
  ["answer_too_large", "malformed_answer"],
  ["overloaded", "overloaded"],
] as const)("a call that ended as %s is a fallback for the reason %s", (code, reason) => {
  const reply = { kind: "failed", stage: "after_send", code } as const;
  expect(classifyInjection(reply)).toMatchObject({ kind: "fallback", reason });
});

test("any status with any body has a class with a known reason", () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 999 }), fc.jsonValue(), (status, body) => {
      const verdict = answer(status, body);
      expect(verdict.kind !== "fallback" || FALLBACK_REASONS.includes(verdict.reason)).toBe(true);
    }),
  );
});

test("a 400 with an API gateway's members is no fault of the caller, and says why", () => {
  expect(answer(400, { message: "unknown country" })).toEqual({
    kind: "fallback",
    reason: "unexpected_status",
    answerFault: "an object with only message counts as a proxy's: add code",
  });
});
