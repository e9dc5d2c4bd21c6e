import { injectionRequestSchema } from "@adrelay/contract";
import { expect, test } from "vitest";
import { injectionBody, readUserContext } from "./injection-body.ts";

const REQUIRED = {
  "x-adrelay-session-id": "session-1",
  "x-adrelay-user-agent": "Mozilla/5.0",
  "x-adrelay-user-ip": "203.0.113.9",
};
const contextOf = (headers: Readonly<Record<string, string>>) =>
  readUserContext((name) => new Map(Object.entries(headers)).get(name));
const bodyOf = (headers: Readonly<Record<string, string>>) => {
  const read = contextOf(headers);
  const context = read.kind === "read" ? read.context : expect.fail("the context is missing");
  return JSON.parse(injectionBody("Which shoes?", context).toString("utf8"));
};

test.each([["X-Adrelay-Session-Id"], ["X-Adrelay-User-Agent"], ["X-Adrelay-User-IP"]])(
  "without %s there is no context, and it is named",
  (name) => {
    expect(contextOf({ ...REQUIRED, [name.toLowerCase()]: " " })).toEqual({
      kind: "missing",
      headers: [name],
    });
  },
);

test("without any header of the end user all three are named", () => {
  const headers = ["X-Adrelay-Session-Id", "X-Adrelay-User-Agent", "X-Adrelay-User-IP"];
  expect(contextOf({})).toEqual({ kind: "missing", headers });
});

test("the least that is asked has prompt and request context only", () => {
  expect(bodyOf(REQUIRED)).toEqual({
    prompt: "Which shoes?",
    request_context: { session_id: "session-1", user_agent: "Mozilla/5.0", user_ip: "203.0.113.9" },
  });
});

test("all headers of the end user reach the ad service in its own form", () => {
  const body = bodyOf({
    ...REQUIRED,
    "x-adrelay-country": "BR",
    "x-adrelay-region": "SP",
    "x-adrelay-city": Buffer.from("São Paulo").toString("latin1"),
    "x-adrelay-asn": "64500",
    "x-adrelay-age": "41",
    "x-adrelay-gender": "female",
    "x-adrelay-wrapping-type": "markdown",
  });
  expect(body.request_configuration).toEqual({ wrapping_type: "markdown" });
  expect(body.optional_context).toEqual({
    country: "BR",
    region: "SP",
    city: "São Paulo",
    asn: 64_500,
    age: 41,
    gender: "female",
  });
  expect(injectionRequestSchema.safeParse(body).success).toBe(true);
});

test("a city that is sent as Latin-1 stays readable", () => {
  expect(bodyOf({ ...REQUIRED, "x-adrelay-city": "São Paulo" }).optional_context.city).toBe("São Paulo");
});
