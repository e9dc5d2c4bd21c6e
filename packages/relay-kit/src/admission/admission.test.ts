import { publisherIdSchema } from "@adrelay/contract";
import { limitInBytes, type Quotas } from "@adrelay/core";
import type { Publisher } from "@adrelay/provider";
import { expect, test } from "vitest";
import { Admission, type AdmissionResult } from "./admission.ts";
import type { Holding, Refusal } from "./holding.ts";

const NONE = Number.POSITIVE_INFINITY;
const QUOTAS: Quotas = {
  requestsPerSecond: NONE,
  burst: NONE,
  bytesPerSecond: NONE,
  bytesBurst: NONE,
  injectionsInFlight: NONE,
  bytesInFlight: { share: 0.5 },
  queuedBytes: { bytes: NONE },
  deadBytes: { bytes: NONE },
  unknownBytes: { bytes: NONE },
};
const SMALL = { operation: "start_injection" as const, announcedBytes: 0 };

function publisher(id: string, quotas?: Publisher["quotas"]): Publisher {
  const account = { url: "http://127.0.0.1:9", apiKey: "key", apiKeyHeader: "X-Key" };
  return { id: publisherIdSchema.parse(id), name: id, keys: [], account, quotas };
}

function setup({ callsMax = 90, bytesMax = 1000 } = {}) {
  const refused: [string, Refusal][] = [];
  const onRefused = ({ id }: Publisher, refusal: Refusal) => void refused.push([id, refusal]);
  const admission = new Admission({ quotas: QUOTAS, callsMax, bytesMax, onRefused });
  return { admission, refused };
}

function holdingOf(result: AdmissionResult): Holding {
  if (result.kind !== "admitted") {
    return expect.fail(`refused: ${JSON.stringify(result)}`);
  }
  return result.holding;
}

test("requests over the burst are refused until the rate allows the next one", () => {
  const { admission, refused } = setup();
  const one = publisher("one", { requestsPerSecond: 2, burst: 3 });
  const kinds = [0, 0, 0, 0, 400, 500].map((nowMs) => admission.admit(one, SMALL, nowMs).kind);
  expect(kinds).toEqual(["admitted", "admitted", "admitted", "over_quota", "over_quota", "admitted"]);
  const rate = { kind: "over_quota", quota: "requests_per_second", limit: 2, used: undefined };
  expect(refused[0]).toEqual(["one", { ...rate, retryAfterSeconds: 1 }]);
  expect(admission.admit(publisher("two"), SMALL, 400).kind).toBe("admitted");
});

const ofBytes = (bodyBytes: number) => ({ ...SMALL, bodyBytes });

test("bodies over the bytes a second are refused until the rate allows the next one", () => {
  const { admission, refused } = setup();
  const one = publisher("one", { bytesPerSecond: 100, bytesBurst: 200 });
  const kinds = [0, 0, 0, 5, 10].map((nowMs) => admission.admit(one, ofBytes(100), nowMs).kind);
  expect(kinds).toEqual(["admitted", "admitted", "over_quota", "over_quota", "admitted"]);
  const rate = { kind: "over_quota", quota: "bytes_per_second", limit: 100, used: undefined };
  expect(refused[0]).toEqual(["one", { ...rate, retryAfterSeconds: 1 }]);
  expect(admission.admit(one, { ...ofBytes(100), operation: "acknowledge" }, 10).kind).toBe("admitted");
  expect(admission.admit(publisher("two"), ofBytes(100), 10).kind).toBe("admitted");
});

test("a refused request costs neither bytes nor a call", () => {
  const { admission } = setup({ callsMax: 1 });
  const one = publisher("one", { bytesPerSecond: 1, bytesBurst: 200 });
  const holding = holdingOf(admission.admit(one, ofBytes(100), 0));
  expect(admission.admit(one, ofBytes(100), 0)).toEqual({ kind: "overloaded", limit: "calls" });
  holding.end();
  holdingOf(admission.admit(one, ofBytes(100), 0)).end();
  expect(admission.admit(one, ofBytes(100), 0).kind).toBe("over_quota");
  expect(admission.calls.used).toBe(0);
});

test("a request without a body passes while its publisher is over its bytes a second", () => {
  const { admission } = setup();
  const one = publisher("one", { bytesPerSecond: 1, bytesBurst: 1 });
  const kinds = [1000, 1, 0].map((bytes) => admission.admit(one, ofBytes(bytes), 0).kind);
  expect(kinds).toEqual(["admitted", "over_quota", "admitted"]);
});

test("a body of unknown length is charged once it is read, and others beyond what they announced", () => {
  const { admission } = setup();
  const one = publisher("one", { bytesPerSecond: 1, bytesBurst: 100 });
  const chunked = holdingOf(admission.admit(one, ofBytes(1)));
  const compressed = holdingOf(admission.admit(one, ofBytes(30)));
  expect([compressed.chargeBody(20), compressed.chargeBody(100)]).toEqual([undefined, undefined]);
  expect(chunked.chargeBody(50)).toMatchObject({ quota: "bytes_per_second" });
});

test("bodies of unknown length that are read at the same time are all charged", () => {
  const { admission } = setup();
  const one = publisher("one", { bytesPerSecond: 100, bytesBurst: 200 });
  const chunked = Array.from({ length: 10 }, () => holdingOf(admission.admit(one, ofBytes(1))));
  for (const holding of chunked) {
    holding.chargeBody(1000);
  }
  const refused = admission.admit(one, ofBytes(1));
  // They owe nearly 9,800 bytes.
  expect(refused.kind === "over_quota" && refused.retryAfterSeconds).toBeGreaterThan(60);
});

test("injections over their quota are refused, and acknowledgments are not", () => {
  const { admission } = setup();
  const one = publisher("one", { injectionsInFlight: 1 });
  const first = holdingOf(admission.admit(one, SMALL));
  const refusal = {
    kind: "over_quota",
    quota: "injections_in_flight",
    limit: 1,
    used: 1,
    retryAfterSeconds: 1,
  };
  expect(admission.admit(one, SMALL)).toEqual(refusal);
  expect(admission.admit(one, { ...SMALL, operation: "acknowledge" as const }).kind).toBe("admitted");
  first.end();
  expect(admission.admit(one, SMALL).kind).toBe("admitted");
});

test("one publisher gets two thirds of the calls, and another one still some", () => {
  const { admission, refused } = setup({ callsMax: 90 });
  const [greedy, calm] = [publisher("greedy"), publisher("calm")];
  const kinds = Array.from({ length: 90 }, () => admission.admit(greedy, SMALL).kind);
  expect(kinds.filter((kind) => kind === "admitted")).toHaveLength(60);
  expect(refused[0]).toEqual(["greedy", { kind: "overloaded", limit: "calls" }]);
  expect(admission.admit(calm, SMALL).kind).toBe("admitted");
});

test("an announced body over the publisher's quota is refused before it is read", () => {
  const { admission } = setup({ bytesMax: 1000 });
  const one = publisher("one");
  // A share of 50 %.
  expect(limitInBytes(QUOTAS.bytesInFlight, 1000)).toBe(500);
  expect(holdingOf(admission.admit(one, { ...SMALL, announcedBytes: 400 })).holdBody(400)).toBe(true);
  expect(admission.admit(one, { ...SMALL, announcedBytes: 101 })).toEqual({
    kind: "over_quota",
    quota: "bytes_in_flight",
    limit: 500,
    used: 400,
    retryAfterSeconds: 1,
  });
  expect(admission.admit(one, { ...SMALL, announcedBytes: 100 }).kind).toBe("admitted");
  expect(admission.calls.used).toBe(2);
});

test("a body for which the process has no room is refused as overloaded", () => {
  const { admission } = setup({ bytesMax: 1000 });
  holdingOf(admission.admit(publisher("one"), SMALL)).holdBody(400);
  holdingOf(admission.admit(publisher("two"), SMALL)).holdBody(300);
  const third = admission.admit(publisher("three"), { ...SMALL, announcedBytes: 250 });
  expect(third).toEqual({ kind: "overloaded", limit: "bytes" });
});

test("what a publisher holds counts on after its quotas have changed", () => {
  const { admission } = setup();
  const holding = holdingOf(admission.admit(publisher("one"), SMALL));
  holding.holdBody(400);
  const changed = publisher("one", { injectionsInFlight: 1, bytesInFlight: { bytes: 450 } });
  expect(admission.admit(changed, SMALL)).toMatchObject({ quota: "injections_in_flight", used: 1 });
  const next = holdingOf(admission.admit(changed, { ...SMALL, operation: "acknowledge" as const }));
  expect(next.holdBody(51)).toBe(false);
  expect(next.refusal).toMatchObject({ quota: "bytes_in_flight", limit: 450, used: 400 });
  holding.end();
  next.end();
  expect([admission.calls.used, admission.bytes.used]).toEqual([0, 0]);
});
