import { adResponseIdSchema, publisherIdSchema, VERDICTS, verdictSchema } from "@adrelay/contract";
import { ENTRY_STATES } from "@adrelay/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { parseEntry } from "./entry.ts";

const ID = adResponseIdSchema.parse("0b7a52c9-9c0e-4f6e-8d0a-2f6f3f0c7d11");

const time = z.coerce.number().optional();
const count = z.coerce.number().default(0);
const filled = z
  .string()
  .optional()
  .transform((text) => (text === "" ? undefined : text));

/** What an entry is in Redis, told a second time: the reading by hand must agree with it. */
const storedSchema = z
  .object({
    s: z.enum(ENTRY_STATES).exclude(["absent"]),
    p: publisherIdSchema,
    t: filled,
    r: time,
    d: time,
    a: time,
    q: time,
    w: time,
    e: time,
    n: count,
    f: count,
    c: filled,
    o: filled,
    x: filled,
    i: filled,
    L: filled,
    z: z.preprocess((size) => (size === "" ? undefined : size), time),
    y: filled,
  })
  .transform(({ s, p, t, r, d, a, q, w, e, n, f, c, o, x, i, L, z: sizeBytes, y }) => ({
    id: ID,
    state: s,
    publisher: p,
    textHash: t,
    recordedAtMs: r,
    deadlineAtMs: d,
    acceptedAtMs: a,
    queuedAtMs: q ?? a,
    nextAttemptAtMs: w,
    endedAtMs: e,
    attempts: n,
    failedAttempts: f,
    lastCode: c,
    verdict: verdictSchema.safeParse(o).data,
    deadReason: x,
    providerAckId: i,
    attemptLog: [],
    sizeBytes,
    providerError: y,
    isLate: L !== undefined,
  }));

const text = fc.oneof(fc.string(), fc.constant(""));
const number = fc.oneof(
  fc.nat().map(String),
  fc.constantFrom("1764337589123", "1.5", "-1", "0", "", " 7 ", "1e3", "x", "NaN", "Infinity"),
);
const fields = fc.record(
  {
    s: fc.constantFrom(...ENTRY_STATES, "", "nonsense"),
    p: fc.constantFrom("ours", "", "a b", "x".repeat(65)),
    ...Object.fromEntries([..."tcxiLy"].map((name) => [name, text])),
    ...Object.fromEntries([..."rdaqwenfz"].map((name) => [name, number])),
    o: fc.oneof(text, fc.constantFrom(...VERDICTS)),
    later: fc.string(),
  },
  { requiredKeys: [] },
);

test("an entry is read as the schema of it says, or not at all", () => {
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

test("the last code is the latest attempt's, and of entries without a log what they tell", () => {
  const stored = ["s", "queued", "p", "ours", "c", "http_500"];
  const log = "1764337589123,http_500,5,retry\n1764337599123,http_503,7,retry\n";
  expect(parseEntry(ID, [...stored, "l", log])?.lastCode).toBe("http_503");
  expect(parseEntry(ID, stored)?.lastCode).toBe("http_500");
});

test("what an attempt ended has ended when that was logged, and what a person ended when that was written down", () => {
  const log = ["p", "ours", "l", "1764337589123,http_422,5,die\n"];
  expect(parseEntry(ID, ["s", "dead", ...log])?.endedAtMs).toBe(1_764_337_589_123);
  expect(parseEntry(ID, ["s", "queued", ...log])?.endedAtMs).toBeUndefined();
  expect(parseEntry(ID, ["s", "discarded", "e", "1764337600000", ...log])?.endedAtMs).toBe(1_764_337_600_000);
});

test("a provider's id is told with its dashes, whichever way it was stored", () => {
  const idOf = (stored: string) =>
    parseEntry(ID, ["s", "delivered", "p", "ours", "i", stored])?.providerAckId;
  expect(idOf(ID.replaceAll("-", ""))).toBe(ID);
  expect(idOf(ID)).toBe(ID);
});

test("an id without fields has no entry", () => {
  expect(parseEntry(ID, [])).toBeUndefined();
});

test.each(["", null, 7, { s: "queued" }])("a reply of %j instead of fields is refused", (reply) => {
  expect(() => parseEntry(ID, reply)).toThrow("no list of fields");
});
