import { expect, test } from "vitest";
import { sessionHashOf } from "./keys.ts";

test("a session's hash depends on its publisher and doesn't show the session id", () => {
  const hash = sessionHashOf("p1", "sess-1");
  expect(hash).toMatch(/^[0-9a-f]{32}$/);
  expect(sessionHashOf("p1", "sess-1")).toBe(hash);
  expect(sessionHashOf("p2", "sess-1")).not.toBe(hash);
  expect(sessionHashOf("p1", "sess-2")).not.toBe(hash);
});
