import fc from "fast-check";
import { expect, test } from "vitest";
import {
  acknowledgmentRequestSchema,
  acknowledgmentResponseSchema,
  readAcknowledgmentRequest,
  readAcknowledgmentResponse,
} from "./acknowledgment.ts";

const ID = "0b7a52c9-9c0e-4f6e-8d0a-2f6f3f0c7d11";

const answers = fc.record(
  {
    ad_ack_id: fc.oneof({ weight: 9, arbitrary: fc.uuid() }, fc.constantFrom(ID.toUpperCase(), "x", 7)),
    status: fc.constantFrom("ok", "no_ad_used", "recoverable_error", "maybe", null),
    success: fc.oneof({ weight: 9, arbitrary: fc.boolean() }, fc.constantFrom("true", 1)),
    later: fc.jsonValue(),
  },
  { requiredKeys: [] },
);

const requests = fc.record(
  {
    ad_response_id: fc.oneof({ weight: 9, arbitrary: fc.uuid() }, fc.constantFrom(ID.toUpperCase(), "x", 7)),
    llm_response: fc.oneof({ weight: 9, arbitrary: fc.string() }, fc.constantFrom(null, 1)),
    later: fc.jsonValue(),
  },
  { requiredKeys: [] },
);

test("a request is read as its schema says, faults and all", () => {
  fc.assert(
    fc.property(requests, (body) => {
      expect(readAcknowledgmentRequest(body)).toEqual(acknowledgmentRequestSchema.safeParse(body));
    }),
    { numRuns: 1000 },
  );
});

test("an answer is read as its schema says, or not at all", () => {
  fc.assert(
    fc.property(fc.oneof(answers, fc.jsonValue()), (body) => {
      expect(readAcknowledgmentResponse(body)).toEqual(acknowledgmentResponseSchema.safeParse(body).data);
    }),
    { numRuns: 1000 },
  );
});
