import fc from "fast-check";
import { expect, test } from "vitest";
import { deliveryJobSchema, readDeliveryJob } from "./delivery-job.ts";

const ID = "0b7a52c9-9c0e-4f6e-8d0a-2f6f3f0c7d11";
const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const job = { v: 1, adResponseId: ID, adAckId: ID, publisher: "acme", body: "{}", requestId: "r" };

/** Most members as we write them, some of any other kind, some left out, some of a later version. */
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

test("a job is read as its schema says, or not at all", () => {
  fc.assert(
    fc.property(fc.oneof(jobs, fc.jsonValue()), (data) => {
      expect(readDeliveryJob(data)).toEqual(deliveryJobSchema.safeParse(data).data);
    }),
    { numRuns: 1000 },
  );
});

test.each([job, { ...job, replyTo: "channel" }])("the job %j is known at a look", (data) => {
  expect(readDeliveryJob(data)).toBe(data);
});
