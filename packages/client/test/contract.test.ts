/** The client imports nothing of the relay, so these tests hold what it says of the wire equal to packages/contract. */
import {
  ACKNOWLEDGE_PATH,
  type AcknowledgmentResponse,
  API_KEY_HEADER,
  type ErrorCode,
  INJECTION_PATH,
  injectionRequestSchema,
} from "@adrelay/contract";
import { expect, expectTypeOf, test } from "vitest";
import type { z } from "zod";
import type { AcknowledgmentStatus, InjectionRequest, ProblemCode } from "../src/index.ts";
import * as wire from "../src/wire.ts";

test("the client's type has every code of the error catalogue, and no other", () => {
  // The compiler checks this. A code that is missing here makes its name appear in the error.
  expectTypeOf<Exclude<ErrorCode, ProblemCode>>().toBeNever();
  expectTypeOf<Exclude<ProblemCode, ErrorCode>>().toBeNever();
});

test("paths, header and statuses are those of the contract", () => {
  const { INJECTION_PATH: injection, ACKNOWLEDGE_PATH: acknowledge, API_KEY_HEADER: header } = wire;
  expect([injection, acknowledge, header]).toEqual([INJECTION_PATH, ACKNOWLEDGE_PATH, API_KEY_HEADER]);
  expectTypeOf<AcknowledgmentStatus>().toEqualTypeOf<AcknowledgmentResponse["status"]>();
});

type SchemaInput = z.input<typeof injectionRequestSchema>;

/** The names that a type spells out, without those of an index signature. */
type KnownKeys<T> = keyof { [Key in keyof T as string extends Key ? never : Key]: 0 };

test("an injection has the members of the contract's schema, with types that it takes", () => {
  expectTypeOf<KnownKeys<InjectionRequest>>().toEqualTypeOf<KnownKeys<SchemaInput>>();
  expectTypeOf<KnownKeys<InjectionRequest["request_context"]>>().toEqualTypeOf<
    KnownKeys<SchemaInput["request_context"]>
  >();
  expectTypeOf<KnownKeys<NonNullable<InjectionRequest["optional_context"]>>>().toEqualTypeOf<
    KnownKeys<NonNullable<SchemaInput["optional_context"]>>
  >();
  const request = {
    prompt: "p",
    request_context: { session_id: "s", user_agent: null, user_ip: "203.0.113.7" },
    request_configuration: { wrapping_type: "markdown" },
    optional_context: { country: "US", region: "CA", city: null, asn: 1, age: 34, gender: "other" },
  } as const satisfies InjectionRequest;
  expect(injectionRequestSchema.safeParse(request).success).toBe(true);
});
