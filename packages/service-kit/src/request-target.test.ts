import fc from "fast-check";
import { expect, test } from "vitest";
import { normalizeTarget } from "./request-target.ts";

test.each([
  ["/api/start/", "/api/start/"],
  ["//api/start/", "/api/start/"],
  ["/api//start", "/api/start"],
  ["/api/start//", "/api/start/"],
  ["/./api/././start/.", "/api/start/"],
  ["///.//api/.//start?next=//a/./b", "/api/start?next=//a/./b"],
  ["http://gateway.example:8080/api/start/", "/api/start/"],
  ["HTTPS://gateway.example//api/start?a=1", "/api/start?a=1"],
  ["http://gateway.example", "/"],
  ["http://gateway.example?a=1", "/?a=1"],
  ["/api/../start/", "/api/../start/"],
  ["/api/.well-known/..", "/api/.well-known/.."],
  ["/api%2Fstart/", "/api%2Fstart/"],
  ["/API/Start/", "/API/Start/"],
  ["*", "*"],
])("the target %s means %s", (target, expected) => {
  expect(normalizeTarget(target)).toBe(expected);
});

test("a target that was normalized is plain", () => {
  const part = fc.constantFrom("/", ".", "a", "%2f", "?", "http://h");
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
      const once = normalizeTarget(`/${parts.join("")}`);
      expect(normalizeTarget(once)).toBe(once);
      expect(once.split("?")[0]).not.toMatch(/\/\/|\/\.\//);
    }),
  );
});
