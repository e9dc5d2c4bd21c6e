import { expect, test } from "vitest";
import { classifyDelivery } from "./delivery.ts";
import { HOLD_MAX_MS, judgeProvider } from "./provider-health.ts";

const judge = (status: number, retryAfter?: string, body?: unknown) =>
  judgeProvider(classifyDelivery({ kind: "answered", status, body, retryAfter }, 0));

const PROBLEM = { title: "No", status: 400, code: "validation_failed" };

test.each([400, 404, 406, 409, 413, 422])(
  "a %i of the service is about the acknowledgment, not the provider",
  (status) => {
    expect(judge(status, undefined, PROBLEM)).toEqual({ kind: "healthy" });
  },
);

test.each([302, 404])("a %i of the edge counts against the provider", (status) => {
  expect(judge(status)).toEqual({ kind: "failing", holdMs: 0 });
});

test.each([400, 403, 413, 451])("a %i of the edge may be about this acknowledgment only", (status) => {
  expect(judge(status)).toEqual({ kind: "blocking" });
});

test("a provider that answers recoverable_error works", () => {
  const body = {
    ad_ack_id: "6f2c8b0e-3b52-4e0e-9a39-0d6a3a1b7c11",
    status: "recoverable_error",
    success: false,
  };
  expect(judge(200, undefined, body)).toEqual({ kind: "healthy" });
});

test.each([500, 502, 503, 408, 425, 429])("a %i counts against the provider", (status) => {
  expect(judge(status)).toEqual({ kind: "failing", holdMs: 0 });
});

test("a malformed 2xx and no answer at all count against the provider", () => {
  expect(judge(200, undefined, "<html>")).toEqual({ kind: "failing", holdMs: 0 });
  const timeout = classifyDelivery({ kind: "failed", stage: "after_send", code: "timeout" }, 0);
  expect(judgeProvider(timeout)).toEqual({ kind: "failing", holdMs: 0 });
});

test("a 401 is about the key, and so is a 403 if the service says so", () => {
  expect(judge(401)).toEqual({ kind: "refusing" });
  expect(judge(403, undefined, { code: "key_revoked" })).toEqual({ kind: "refusing" });
  expect(judge(403, undefined, { code: "invalid_api_key" })).toEqual({ kind: "refusing" });
  expect(judge(403, undefined, { code: "InvalidApiKey" })).toEqual({ kind: "refusing" });
  expect(judge(403, undefined, { code: "idempotency_key_reused" })).toEqual({ kind: "blocking" });
  expect(judge(403, undefined, { code: "other_publisher" })).toEqual({ kind: "blocking" });
  expect(judge(403)).toEqual({ kind: "blocking" });
});

test("a 429 with Retry-After throttles the account, for at most five minutes", () => {
  expect(judge(429, "7")).toEqual({ kind: "throttled", holdMs: 7000 });
  expect(judge(429, "3600")).toEqual({ kind: "throttled", holdMs: HOLD_MAX_MS });
  expect(judge(429, "Thu, 01 Jan 1970 00:01:00 GMT")).toEqual({ kind: "throttled", holdMs: 60_000 });
});

test("an unreadable Retry-After counts as none", () => {
  for (const nonsense of ["soon", "-5", "1.5", "", "Thu, 32 Foo 1970", "9e9"]) {
    expect(judge(429, nonsense)).toEqual({ kind: "failing", holdMs: 0 });
  }
});

test("a 503 with Retry-After only delays the next probe", () => {
  expect(judge(503, "9")).toEqual({ kind: "failing", holdMs: 9000 });
});
