import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type CallFailure,
  classifyDelivery,
  DEAD_REASONS,
  parseRetryAfterMs,
  publicErrorOf,
  RETRY_AFTER_MAX_MS,
} from "./delivery.ts";

const ACK_ID = "0b0f7a52-5c1c-4a0b-9a55-2f5a5f7b8f10";
const answer = (status: number, body: unknown = undefined, retryAfter?: string) =>
  classifyDelivery({ kind: "answered", status, body, retryAfter }, 0);
const ack = (status: string, success: boolean) => ({ ad_ack_id: ACK_ID, status, success });

test.each([
  [200, ack("ok", true), { kind: "delivered", verdict: "ok", providerAckId: ACK_ID }],
  [201, ack("no_ad_used", true), { kind: "delivered", verdict: "no_ad_used" }],
  [200, ack("recoverable_error", false), { kind: "retry", pace: "scheduled", code: "recoverable_error" }],
  [200, undefined, { kind: "retry", code: "malformed_answer" }],
  [200, ack("maybe", true), { kind: "retry", code: "malformed_answer" }],
  [200, { status: "ok", success: true }, { kind: "retry", code: "malformed_answer" }],
  [204, undefined, { kind: "retry", code: "malformed_answer" }],
  [200, { ad_ack_id: ACK_ID, status: "ok" }, { kind: "delivered", verdict: "ok", providerAckId: ACK_ID }],
  [200, { ad_ack_id: "ack-7", status: "no_ad_used" }, { kind: "delivered", providerAckId: undefined }],
  [301, undefined, { kind: "retry", pace: "scheduled", code: "edge_301", diesAs: "blocked" }],
  [302, { error: "log in" }, { kind: "retry", code: "edge_302", diesAs: "blocked" }],
  [400, { code: "invalid_json" }, { kind: "dead", reason: "http_400" }],
  [400, undefined, { kind: "retry", pace: "slow", code: "edge_400", diesAs: "blocked" }],
  [401, undefined, { kind: "retry", pace: "slow", blame: "key" }],
  [403, undefined, { kind: "retry", pace: "slow", code: "edge_403", diesAs: "blocked" }],
  [403, { message: "Forbidden" }, { kind: "retry", pace: "slow", code: "edge_403", diesAs: "blocked" }],
  [403, { code: "other_publisher" }, { kind: "retry", pace: "slow", code: "http_403", diesAs: "forbidden" }],
  [403, { code: "key_revoked" }, { kind: "retry", pace: "slow", blame: "key", diesAs: "exhausted" }],
  [404, { detail: "Not found." }, { kind: "dead", reason: "http_404" }],
  [404, undefined, { kind: "retry", pace: "scheduled", code: "edge_404", diesAs: "blocked" }],
  [404, { message: "no Route matched" }, { kind: "retry", code: "edge_404" }],
  [404, null, { kind: "dead", reason: "http_404" }],
  [404, {}, { kind: "dead", reason: "http_404" }],
  [404, { reason: "gone", message: "no" }, { kind: "dead", reason: "http_404" }],
  [404, ["code"], { kind: "retry", code: "edge_404" }],
  [406, undefined, { kind: "refused" }],
  [408, undefined, { kind: "retry", pace: "scheduled" }],
  [409, undefined, { kind: "delivered", verdict: undefined, providerAckId: undefined }],
  [
    409,
    { ad_ack_id: ACK_ID, acknowledgment_status: "no_ad_used" },
    { kind: "delivered", verdict: "no_ad_used", providerAckId: ACK_ID },
  ],
  [413, { title: "Too large" }, { kind: "dead", reason: "http_413" }],
  [418, { error: "teapot" }, { kind: "dead", reason: "http_4xx", code: "http_418" }],
  [422, { errors: [] }, { kind: "dead", reason: "http_422" }],
  [425, undefined, { kind: "retry", pace: "scheduled" }],
  [429, undefined, { kind: "retry", pace: "scheduled" }],
  [500, undefined, { kind: "retry", pace: "scheduled" }],
  [599, undefined, { kind: "retry", pace: "scheduled" }],
])("a %d with %j is classified as %j", (status, body, expected) => {
  expect(answer(status, body)).toMatchObject(expected);
});

test.each([
  [undefined, "body must be a JSON object"],
  ["<html>", "body must be a JSON object"],
  [{ status: "ok" }, "ad_ack_id must be a string"],
  [
    { ad_ack_id: "", status: "OK" },
    "ad_ack_id must not be empty; status must be one of ok, no_ad_used, recoverable_error",
  ],
])("a 200 with %j is malformed: %s", (body, answerFault) => {
  expect(answer(200, body)).toMatchObject({ kind: "retry", code: "malformed_answer", answerFault });
});

test("an object with an API gateway's members is the edge's, and the fault says how to be the service", () => {
  const answerFault = "an object with only message and request_id counts as a proxy's: add code";
  const body = { message: "unknown id", request_id: "r-1" };
  expect(answer(404, body)).toMatchObject({ code: "edge_404", answerFault });
  expect(answer(404, { ...body, code: "unknown" })).toMatchObject({ kind: "dead", reason: "http_404" });
  expect(answer(404, undefined)).not.toHaveProperty("answerFault");
});

test.each([
  [406, { kind: "retry", pace: "slow", blame: "acknowledgment", diesAs: "blocked", code: "edge_406" }],
  [409, { kind: "retry", pace: "scheduled", blame: "provider", diesAs: "blocked", code: "edge_409" }],
])("a page with %d is no end of an acknowledgment", (status, expected) => {
  const reply = { kind: "answered", status, body: undefined, isPage: true, retryAfter: undefined } as const;
  expect(classifyDelivery(reply, 0)).toMatchObject(expected);
});

const CALL_FAILURES = [
  "timeout",
  "unreachable",
  "dns_failed",
  "certificate_invalid",
  "proxy_failed",
  "connection_lost",
  "answer_too_large",
  "overloaded",
] as const satisfies readonly CallFailure[];

test.each(CALL_FAILURES)("a call that ended as %s before it was sent is retried on schedule", (code) => {
  expect(classifyDelivery({ kind: "failed", stage: "before_send", code }, 0)).toEqual({
    kind: "retry",
    pace: "scheduled",
    retryAfterMs: undefined,
    blame: "provider",
    diesAs: "exhausted",
    code,
  });
});

test.each(CALL_FAILURES)("a call that ended as %s after it was sent is ambiguous", (code) => {
  expect(classifyDelivery({ kind: "failed", stage: "after_send", code }, 0)).toEqual({
    kind: "ambiguous",
    code,
  });
});

test("Retry-After is honoured on 429 and 503", () => {
  expect(answer(429, undefined, "7")).toMatchObject({ retryAfterMs: 7000 });
  expect(answer(503, undefined, "Thu, 01 Jan 1970 00:00:09 GMT")).toMatchObject({ retryAfterMs: 9000 });
});

test("any status with any body has a class, and only 406 is refused", () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 999 }), fc.jsonValue(), (status, body) => {
      const outcome = answer(status, body);
      expect(outcome.kind === "refused").toBe(status === 406);
      expect(outcome.kind !== "dead" || DEAD_REASONS.includes(outcome.reason)).toBe(true);
    }),
  );
});

const problem = (body: unknown) => ({ kind: "answered", status: 422, body, retryAfter: undefined }) as const;

test.each(["validation_failed", "E-1042", "a.b", "x".repeat(64)])(
  "the provider's code %s is kept unchanged",
  (code) => {
    expect(publicErrorOf(problem({ code, detail: "free text" }))).toBe(code);
  },
);

test.each(["", "two words", "x".repeat(65), "läuft", "a\nb", "<b>", 42, null, ["a"], undefined])(
  "the code %j may contain what a user wrote and is dropped",
  (code) => {
    expect(publicErrorOf(problem({ code }))).toBeUndefined();
  },
);

test.each([undefined, null, "code", 1, [], ["code"]])("a body %j has no code", (body) => {
  expect(publicErrorOf(problem(body))).toBeUndefined();
});

test("a call without an answer has no code", () => {
  expect(publicErrorOf({ kind: "failed", stage: "after_send", code: "timeout" })).toBeUndefined();
});

const NOW_MS = Date.parse("Fri, 27 Nov 2026 12:00:00 GMT");

test.each([
  ["0", 0],
  ["7", 7000],
  [" 7 ", 7000],
  ["99999999999999999999", RETRY_AFTER_MAX_MS],
  ["Fri, 27 Nov 2026 12:00:30 GMT", 30_000],
  ["Fri, 27 Nov 2026 11:00:00 GMT", 0],
  ["Fri, 27 Nov 2099 11:00:00 GMT", RETRY_AFTER_MAX_MS],
  ["-1", undefined],
  ["1.5", undefined],
  ["soon", undefined],
  ["2026-11-27", undefined],
  ["Fri, 99 Nov 2026 12:00:30 GMT", undefined],
  ["", undefined],
  [undefined, undefined],
])("Retry-After %j asks for %j ms", (header, expected) => {
  expect(parseRetryAfterMs(header, NOW_MS)).toBe(expected);
});

test("no header asks for a negative or unbounded wait", () => {
  fc.assert(
    fc.property(fc.string(), (header) => {
      const waitMs = parseRetryAfterMs(header, NOW_MS) ?? 0;
      expect(waitMs).toBeGreaterThanOrEqual(0);
      expect(waitMs).toBeLessThanOrEqual(RETRY_AFTER_MAX_MS);
    }),
  );
});
