import { expect, test } from "vitest";
import { limitInBytes, parseByteLimit, quotasOf, quotasSchema, sizeLimitSchema } from "./quotas.ts";

const NO_LIMIT = Number.POSITIVE_INFINITY;

test.each([
  ["64MB", { bytes: 67_108_864 }],
  ["1.5 kb", { bytes: 1536 }],
  ["1GB", { bytes: 1_073_741_824 }],
  ["700", { bytes: 700 }],
  ["2.5%", { share: 0.025 }],
  ["off", { bytes: NO_LIMIT }],
  ["101%", undefined],
  ["-1", undefined],
  ["64 apples", undefined],
  ["", undefined],
])("the limit %s is %o", (text, limit) => {
  expect(parseByteLimit(text)).toEqual(limit);
});

test.each([
  ["8MB", 8_388_608],
  ["off", NO_LIMIT],
  ["8%", undefined],
  ["0", undefined],
])("the bytes a second %s are %o", (text, bytes) => {
  expect(sizeLimitSchema.safeParse(text).data).toBe(bytes);
});

test("a share is of the memory, and no limit while that is unknown", () => {
  expect(limitInBytes({ share: 0.05 }, 67_108_864)).toBe(3_355_443);
  expect(limitInBytes({ share: 0.05 }, undefined)).toBe(NO_LIMIT);
  expect(limitInBytes({ bytes: 7 }, undefined)).toBe(7);
});

test("a publisher has the quotas of the file, and the defaults for the others", () => {
  const given = quotasSchema.parse({
    burst: 5,
    requests_per_second: "off",
    queued_bytes: "1KB",
    bytes_burst: 7,
  });
  const defaults = {
    requestsPerSecond: 1,
    burst: 2,
    bytesPerSecond: 8,
    bytesBurst: 9,
    injectionsInFlight: 3,
    bytesInFlight: { share: 0.4 },
    queuedBytes: { share: 0.5 },
    deadBytes: { share: 0.6 },
    unknownBytes: { share: 0.7 },
  };
  expect(quotasOf({ quotas: given }, defaults)).toEqual({
    ...defaults,
    requestsPerSecond: NO_LIMIT,
    burst: 5,
    bytesBurst: 7,
    queuedBytes: { bytes: 1024 },
  });
});
