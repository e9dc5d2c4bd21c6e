import fc from "fast-check";
import { expect, test } from "vitest";
import {
  acknowledgmentAnswerSchema,
  acknowledgmentRequestSchema,
  deliveryJobSchema,
  parseAcknowledgmentAnswer,
  parseAcknowledgmentRequest,
  parseDeliveryJob,
} from "./acknowledgment.ts";

const ID = "0b7a52c9-9c0e-4f6e-8d0a-2f6f3f0c7d11";
const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const job = { v: 1, adResponseId: ID, adAckId: ID, publisher: "acme", body: "{}", requestId: "r" };

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

test("a request is parsed as by its schema, with the same faults", () => {
  fc.assert(
    fc.property(requests, (body) => {
      expect(parseAcknowledgmentRequest(body)).toEqual(acknowledgmentRequestSchema.safeParse(body));
    }),
    { numRuns: 1000 },
  );
});

test("a response is parsed as by its schema, or refused", () => {
  fc.assert(
    fc.property(fc.oneof(answers, fc.jsonValue()), (body) => {
      expect(parseAcknowledgmentAnswer(body)).toEqual(acknowledgmentAnswerSchema.safeParse(body));
    }),
    { numRuns: 1000 },
  );
});

/** Most members are as we write them. Some have another type, some are missing, some are of a later version. */
const jobs = fc.record(
  {
    v: fc.oneof({ weight: 9, arbitrary: fc.constant(1) }, fc.constantFrom(2, "1")),
    adResponseId: fc.oneof({ weight: 9, arbitrary: fc.uuid() }, fc.constantFrom(ID.toUpperCase(), "x", 7)),
    adAckId: fc.oneof({ weight: 9, arbitrary: fc.uuid() }, fc.string()),
    publisher: fc.oneof({ weight: 9, arbitrary: fc.constant("acme") }, fc.constantFrom("a b", "", null)),
    body: fc.oneof({ weight: 9, arbitrary: fc.string() }, fc.jsonValue()),
    requestId: fc.oneof({ weight: 9, arbitrary: fc.string() }, fc.jsonValue()),
    replyTo: fc.oneof({ weight: 9, arbitrary: fc.string() }, fc.jsonValue()),
    traceparent: fc.constantFrom(TRACEPARENT, "nonsense", 7),
    later: fc.jsonValue(),
  },
  { requiredKeys: ["v", "adResponseId", "adAckId", "publisher", "body"] },
);

test("a job is parsed as by its schema, or refused", () => {
  fc.assert(
    fc.property(fc.oneof(jobs, fc.jsonValue()), (data) => {
      expect(parseDeliveryJob(data)).toEqual(deliveryJobSchema.safeParse(data).data);
    }),
    { numRuns: 1000 },
  );
});

test.each([job, { ...job, replyTo: "channel" }])(
  "the job %j is returned as it is, without the schema",
  (data) => {
    expect(parseDeliveryJob(data)).toBe(data);
  },
);
