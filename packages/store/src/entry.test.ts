import { adResponseIdSchema, publisherIdSchema, VERDICTS, verdictSchema } from "@adrelay/contract";
import { ENTRY_STATES } from "@adrelay/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { lastCodeOf, parseEntry } from "./entry.ts";

const ID = adResponseIdSchema.parse("0b7a52c9-9c0e-4f6e-8d0a-2f6f3f0c7d11");

const time = z.coerce.number().optional();
const count = z.coerce.number().default(0);
const filled = z
  .string()
  .optional()
  .transform((text) => (text === "" ? undefined : text));

const base = { p: publisherIdSchema, r: time, d: time, T: z.string().optional() };
const acknowledged = {
  t: filled,
  a: z.coerce.number(),
  q: time,
  n: count,
  f: count,
  L: filled,
  z: z.preprocess((size) => (size === "" ? undefined : size), time),
};

/** The schema of an entry in Redis. `parseEntry`, which is written by hand, must agree with it. */
const storedSchema = z.discriminatedUnion("s", [
  z
    .object({ ...base, s: z.enum(["awaiting", "unacknowledgeable", "abandoned"]) })
    .transform((stored) => ({ ...baseOf(stored), state: stored.s })),
  z
    .object({ ...base, s: z.literal("missed"), e: time })
    .transform((stored) => ({ ...baseOf(stored), state: stored.s, endedAtMs: stored.e })),
  z.object({ ...base, ...acknowledged, s: z.literal("queued"), w: time, y: filled }).transform((stored) => ({
    ...acknowledgedOf(stored),
    state: stored.s,
    nextAttemptAtMs: stored.w,
    providerError: stored.y,
  })),
  z
    .object({ ...base, ...acknowledged, s: z.literal("delivered"), e: time, o: filled, i: filled })
    .transform((stored) => ({
      ...acknowledgedOf(stored),
      state: stored.s,
      endedAtMs: stored.e,
      verdict: verdictSchema.safeParse(stored.o).data,
      providerAckId: stored.i,
    })),
  z
    .object({ ...base, ...acknowledged, s: z.literal("refused"), e: time })
    .transform((stored) => ({ ...acknowledgedOf(stored), state: stored.s, endedAtMs: stored.e })),
  z
    .object({
      ...base,
      ...acknowledged,
      s: z.enum(["dead", "discarded", "expired"]),
      e: time,
      x: filled,
      y: filled,
    })
    .transform((stored) => ({
      ...acknowledgedOf(stored),
      state: stored.s,
      endedAtMs: stored.e,
      death: { reason: stored.x, providerError: stored.y },
    })),
]);

function baseOf({ p, r, d, T }: StoredBase) {
  const injection = r === undefined ? undefined : { recordedAtMs: r, deadlineAtMs: d };
  return { id: ID, publisher: p, injection, hasTurn: T === "j" };
}

interface StoredBase {
  readonly p: string;
  readonly r?: number | undefined;
  readonly d?: number | undefined;
  readonly T?: string | undefined;
}

type StoredAcknowledged = z.infer<z.ZodObject<typeof base & typeof acknowledged>>;

function acknowledgedOf(stored: StoredAcknowledged) {
  const { t, a, q, n, f, L, z: sizeBytes } = stored;
  return {
    ...baseOf(stored),
    textHash: t,
    acceptedAtMs: a,
    queuedAtMs: q ?? a,
    attempts: n,
    failedAttempts: f,
    attemptLog: [],
    isLate: L !== undefined,
    sizeBytes,
  };
}

const text = fc.oneof(fc.string(), fc.constant(""));
const number = fc.oneof(
  fc.nat().map(String),
  fc.constantFrom("1764337589123", "1.5", "-1", "0", "", " 7 ", "1e3", "x", "NaN", "Infinity"),
);
const fields = fc.record(
  {
    s: fc.constantFrom(...ENTRY_STATES, "", "nonsense"),
    p: fc.constantFrom("ours", "", "a b", "x".repeat(65)),
    ...Object.fromEntries([..."txiLy"].map((name) => [name, text])),
    ...Object.fromEntries([..."rdaqwenfz"].map((name) => [name, number])),
    o: fc.oneof(text, fc.constantFrom(...VERDICTS)),
    T: fc.constantFrom("j", "mtoken", ""),
    later: fc.string(),
  },
  { requiredKeys: [] },
);

test("an entry is read exactly as its schema describes", () => {
  fc.assert(
    fc.property(fields, (stored) => {
      fc.pre(Object.keys(stored).length > 0);
      const flat = Object.entries(stored).flat();
      const expected = storedSchema.safeParse(stored);
      if (expected.success) {
        expect(parseEntry(ID, flat)).toEqual(expected.data);
      } else {
        expect(() => parseEntry(ID, flat)).toThrow();
      }
    }),
    { numRuns: 2000 },
  );
});

test("the last code is that of the latest attempt", () => {
  const stored = ["s", "queued", "p", "ours", "a", "1764337580000"];
  const log = "1764337589123,http_500,5,retry\n1764337599123,timeout,7,ambiguous\n";
  const read = (fields: readonly string[]) => parseEntry(ID, fields) ?? fail();
  expect(lastCodeOf(read([...stored, "l", log]))).toBe("timeout");
  expect(lastCodeOf(read(stored))).toBeUndefined();
  expect(lastCodeOf(read(["s", "awaiting", "p", "ours"]))).toBeUndefined();
});

test("an attempt with the outcome of a newer version is read as a retry", () => {
  const stored = ["s", "queued", "p", "ours", "a", "1", "l", "1764337589123,http_500,5,newer\n"];
  expect(parseEntry(ID, stored)).toMatchObject({ attemptLog: [{ code: "http_500", outcome: "retry" }] });
});

test("an entry ends at the time of its last attempt or of the discard", () => {
  const log = ["p", "ours", "a", "1764337580000", "l", "1764337589123,http_422,5,die\n"];
  expect(parseEntry(ID, ["s", "dead", ...log])).toMatchObject({ endedAtMs: 1_764_337_589_123 });
  expect(parseEntry(ID, ["s", "queued", ...log])).not.toHaveProperty("endedAtMs");
  expect(parseEntry(ID, ["s", "discarded", "e", "1764337600000", ...log])).toMatchObject({
    endedAtMs: 1_764_337_600_000,
  });
});

test("a provider's id is read with its dashes, however it was stored", () => {
  const read = (stored: string) => parseEntry(ID, ["s", "delivered", "p", "ours", "a", "1", "i", stored]);
  expect(read(ID.replaceAll("-", ""))).toMatchObject({ providerAckId: ID });
  expect(read(ID)).toMatchObject({ providerAckId: ID });
});

test("an id without fields has no entry", () => {
  expect(parseEntry(ID, [])).toBeUndefined();
});

test.each(["", null, 7, { s: "queued" }])("a reply of %j instead of fields is refused", (reply) => {
  expect(() => parseEntry(ID, reply)).toThrow("no list of fields");
});

function fail(): never {
  throw new TypeError("there is an entry");
}
