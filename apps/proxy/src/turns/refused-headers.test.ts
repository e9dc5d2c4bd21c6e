import { expect, test } from "vitest";
import { refusedHeaders } from "./refused-headers.ts";

test("a problem's paths become the names of the call's headers", () => {
  const errors = [
    { path: "optional_context.country", message: "must be a code of two letters, such as US" },
    { path: "optional_context.age", message: "must be at most 120" },
    { path: "request_configuration.wrapping_type", message: "must be one of xml, plain, markdown" },
  ];
  expect(refusedHeaders({ code: "validation_failed", errors })).toBe(
    "X-Adrelay-Country, X-Adrelay-Age, X-Adrelay-Wrapping-Type",
  );
});

test("a validator's places become the names of the call's headers", () => {
  const detail = [
    { loc: ["body", "request_context", "user_ip"], msg: "203.0.113.999 is no address", type: "ip" },
  ];
  expect(refusedHeaders({ detail })).toBe("X-Adrelay-User-IP");
});

test.each([
  ["nothing", undefined],
  ["a text", { detail: "the user asked for shoes" }],
  ["no known member", { errors: [{ path: "the user asked for shoes", message: "" }] }],
  ["a member of every object", { errors: [{ path: "constructor" }, { path: "optional_context.__proto__" }] }],
  ["no path", { errors: [{ message: "wrong" }] }],
])("a refusal that has %s names no header", (_, body) => {
  expect(refusedHeaders(body)).toBeUndefined();
});

test("a refusal with a thousand faults names five headers at the most", () => {
  const names = ["country", "region", "city", "asn", "age", "gender"];
  const errors = Array.from({ length: 1000 }, (_, at) => ({ path: `optional_context.${names[at % 6]}` }));
  expect(refusedHeaders({ errors })?.split(", ")).toHaveLength(5);
});
