import { expect, test } from "vitest";
import type { Reply } from "./http.ts";
import { backoffMs, classifyReply } from "./plan-send.ts";

const NOW_MS = Date.parse("2026-11-30T12:00:00Z");

function answer(status: number, body: unknown, headers: Record<string, string> = {}): Reply {
  return { kind: "answer", status, body, headers: new Headers(headers) };
}

function problem(status: number, code: string, headers?: Record<string, string>): Reply {
  return answer(status, { type: `urn:adrelay:error:${code}`, title: "t", code, request_id: "r" }, headers);
}

const accepted = (status: string) => ({ ad_ack_id: "a", status, success: true });

test.each([
  ["200 ok", answer(200, accepted("ok")), { kind: "accepted", adAckId: "a", status: "ok" }],
  ["200 no_ad_used", answer(200, accepted("no_ad_used")), { kind: "accepted", status: "no_ad_used" }],
  ["201", answer(201, accepted("recoverable_error")), { kind: "accepted", status: "recoverable_error" }],
  ["406", problem(406, "not_acknowledgeable"), { kind: "refused", error: { code: "not_acknowledgeable" } }],
  ["409", problem(409, "acknowledgment_conflict"), { kind: "refused" }],
  ["404 of the relay", problem(404, "unknown_ad_response"), { kind: "refused" }],
  ["403 of another publisher", problem(403, "other_publisher"), { kind: "refused" }],
  ["422", problem(422, "validation_failed"), { kind: "refused" }],
  ["413", problem(413, "payload_too_large"), { kind: "refused" }],
  ["a page of a proxy", answer(200, undefined), { kind: "retry", about: "relay" }],
  ["a 200 that says nothing", answer(200, { status: "ok" }), { kind: "retry", about: "relay" }],
  ["a redirect", answer(302, undefined), { kind: "retry", about: "relay" }],
  ["404 of a proxy", answer(404, undefined), { kind: "retry", about: "one" }],
  ["406 of a proxy", answer(406, { code: "not_acknowledgeable" }), { kind: "retry", about: "one" }],
  ["403 of a firewall", answer(403, undefined), { kind: "retry", about: "one" }],
  ["404 of a wrong path", problem(404, "not_found"), { kind: "retry", about: "one" }],
  ["401", problem(401, "unauthenticated"), { kind: "retry", about: "relay" }],
  ["403 of a revoked key", problem(403, "key_revoked"), { kind: "retry", about: "relay" }],
  ["429", problem(429, "rate_limited", { "Retry-After": "7" }), { kind: "retry", afterMs: 7000 }],
  ["503", problem(503, "queue_unavailable", { "Retry-After": "1" }), { about: "relay", afterMs: 1000 }],
  ["500", answer(500, undefined), { kind: "retry", about: "relay", afterMs: 0 }],
])("%s means what it should to an acknowledgment", (_name, reply, wanted) => {
  expect(classifyReply(reply, NOW_MS)).toMatchObject(wanted);
});

test.each([
  ["a date", "Mon, 30 Nov 2026 12:00:05 GMT", 5000],
  ["a past date", "Mon, 30 Nov 2026 11:00:00 GMT", 0],
  ["more than an hour", "999999999999", 3_600_000],
  ["nonsense", "soon", 0],
  ["a negative number", "-5", 0],
])("Retry-After with %s is read within its bounds", (_name, value, afterMs) => {
  expect(classifyReply(answer(503, undefined, { "Retry-After": value }), NOW_MS)).toMatchObject({ afterMs });
});

test("waits double up to the longest, and half of each is random", () => {
  const retry = { firstMs: 1000, maxMs: 60_000 };
  const shortest = [1, 2, 3, 7, 1000].map((failures) => backoffMs(failures, retry, () => 0));
  expect(shortest).toEqual([500, 1000, 2000, 30_000, 30_000]);
  expect(backoffMs(1, retry, () => 1)).toBe(1000);
  expect(backoffMs(7, retry, () => 0.5)).toBe(45_000);
});
