import fc from "fast-check";
import { expect, test } from "vitest";
import { AGE_MAX } from "./attributes.ts";
import { injectionRequestSchema, unreadableAttributes } from "./injection.ts";
import { faultsOf } from "./problem.ts";

const CONTEXT = { session_id: "s", user_agent: "curl", user_ip: "203.0.113.7" };
const BODY = { prompt: "Which tent?", request_context: CONTEXT };

function read(body: object) {
  const parsed = injectionRequestSchema.safeParse(body);
  if (!parsed.success) {
    return { faults: faultsOf(parsed.error) };
  }
  return {
    request: parsed.data,
    unreadable: unreadableAttributes(body, parsed.data).map(({ path }) => path),
  };
}

test("null is the same as absent for each optional member and object", () => {
  const nothing = { country: null, region: null, city: null, asn: null, age: null, gender: null };
  for (const more of [
    {},
    { request_configuration: null, optional_context: null },
    { request_configuration: { wrapping_type: null }, optional_context: nothing },
    { request_configuration: {}, optional_context: {}, unknown_member: null },
  ]) {
    const { request, unreadable } = read({ ...BODY, ...more });
    expect(request?.request_configuration?.wrapping_type).toBeUndefined();
    expect(Object.values(request?.optional_context ?? {}).filter((value) => value !== undefined)).toEqual([]);
    expect(unreadable).toEqual([]);
  }
});

test("attributes are read in the forms that callers send", () => {
  const optional = {
    country: " us",
    region: "US-ca ",
    city: "",
    asn: "AS64500",
    age: "34",
    gender: "Female",
  };
  const { request, unreadable } = read({
    ...BODY,
    request_context: { ...CONTEXT, user_ip: "[2001:db8::1]:443" },
    request_configuration: { wrapping_type: " XML" },
    optional_context: optional,
  });
  expect(request).toMatchObject({
    request_context: { user_ip: "2001:db8::1", user_agent: "curl" },
    request_configuration: { wrapping_type: "xml" },
    optional_context: { country: "US", region: "US-ca", asn: 64500, age: 34, gender: "female" },
  });
  expect(unreadable).toEqual(["optional_context.city"]);
});

test("unreadable attributes are named, and absent ones only if each body should have them", () => {
  const optional_context = { country: "T1", region: 7, city: {}, asn: "x", age: 0, gender: "unknown" };
  const { unreadable } = read({ ...BODY, request_context: { session_id: "s" }, optional_context });
  expect(unreadable).toEqual([
    "request_context.user_agent",
    "request_context.user_ip",
    ...Object.keys(optional_context).map((name) => `optional_context.${name}`),
  ]);
  expect(read(BODY).unreadable).toEqual([]);
});

test.each([
  ["prompt", { prompt: undefined }, "must be a string"],
  ["prompt", { prompt: null }, "must be a string"],
  ["prompt", { prompt: "" }, "must not be empty"],
  [
    "request_context",
    { request_context: null },
    "must be an object with session_id, and with user_agent and user_ip if ",
  ],
  ["request_context", { request_context: "s" }, "must be an object with session_id"],
  ["request_context.session_id", { request_context: {} }, "must be a string"],
  ["request_context.session_id", { request_context: { ...CONTEXT, session_id: "" } }, "must not be empty"],
  ["request_configuration", { request_configuration: "xml" }, "must be an object, null or absent"],
  ["optional_context", { optional_context: "US" }, "must be an object, null or absent"],
  ["optional_context", { optional_context: ["US"] }, "must be an object, null or absent"],
  ["request_configuration.wrapping_type", { request_configuration: { wrapping_type: "yaml" } }, "one of xml"],
  ["optional_context.country", { optional_context: { country: "usa" } }, "a code of two letters, such as US"],
  ["optional_context.age", { optional_context: { age: 200 } }, "must be at most 120"],
])("a body with a wrong %s is refused: %j must be right by %j", (path, more, message) => {
  const { faults } = read({ ...BODY, ...more });
  expect(faults).toEqual([{ path, message: expect.stringContaining(message) }]);
});

const NAMES = ["country", "region", "city", "asn", "age", "gender"] as const;
/** Values near the right ones, and any others. */
const anyValue = fc.oneof(
  fc.jsonValue(),
  fc.string({ unit: "binary" }),
  fc.double(),
  fc.constantFrom("US", "us ", "T1", "34", "0", "AS1", "203.0.113.7:80", "[::1]", "__proto__", "unknown"),
);
const isRefused = (name: string, value: unknown) =>
  (name === "country" && typeof value === "string" && /^[a-z]{3}$/iu.test(value.trim())) ||
  (name === "age" && ["number", "string"].includes(typeof value) && Number(value) > AGE_MAX);

test("any value of any attribute is read or unknown, but never refused", () => {
  const attributes = fc.record(
    { ...Object.fromEntries(NAMES.map((name) => [name, anyValue])), user_agent: anyValue, user_ip: anyValue },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(attributes, ({ user_agent, user_ip, ...sent }: Record<string, unknown>) => {
      fc.pre(!Object.entries(sent).some(([name, value]) => isRefused(name, value)));
      const body = {
        ...BODY,
        request_context: { session_id: "s", user_agent, user_ip },
        optional_context: sent,
      };
      const { request, unreadable, faults } = read(body);
      expect(faults).toBeUndefined();
      for (const name of NAMES) {
        const isKnown = request?.optional_context?.[name] !== undefined;
        const isSent = (sent[name] ?? undefined) !== undefined;
        expect(unreadable?.includes(`optional_context.${name}`)).toBe(isSent && !isKnown);
      }
    }),
    { numRuns: 1000 },
  );
});
