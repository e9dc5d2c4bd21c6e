import { adResponseIdSchema, publisherIdSchema, verdictSchema } from "@adrelay/contract";
import { ENTRY_STATES } from "@adrelay/core";
import { z } from "zod";

/** How many of the latest attempts an entry keeps. */
export const ATTEMPTS_KEPT = 20;

const time = z.coerce.number().optional();
const count = z.coerce.number().default(0);
const filled = z
  .string()
  .optional()
  .transform((text) => (text === "" ? undefined : text));

/** Short names in Redis, since there is one hash for each ad response; long ones here. */
const storedSchema = z.object({
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
  l: filled,
  L: filled,
  z: filled,
  y: filled,
});

const entrySchema = z
  .object({ id: adResponseIdSchema, stored: storedSchema })
  .transform(({ id, stored }) => ({
    id,
    state: stored.s,
    publisher: stored.p,
    textHash: stored.t,
    /** Times are milliseconds since 1970 by Redis' clock. */
    recordedAtMs: stored.r,
    deadlineAtMs: stored.d,
    acceptedAtMs: stored.a,
    /** When it was last put on the queue: accepted, or replayed. */
    queuedAtMs: stored.q,
    nextAttemptAtMs: stored.w,
    endedAtMs: stored.e,
    /** All attempts, and those that failed since it was last put on the queue. */
    attempts: stored.n,
    failedAttempts: stored.f,
    lastCode: stored.c,
    verdict: verdictSchema.safeParse(stored.o).data,
    deadReason: stored.x,
    providerAckId: stored.i,
    attemptLog: parseAttempts(stored.l),
    /** Bytes of the caller's body and the provider's public error, as they were at the latest death. */
    sizeBytes: stored.z === undefined ? undefined : Number(stored.z),
    providerError: stored.y,
    isLate: stored.L !== undefined,
  }));

/** One ad response as the ledger knows it. */
export type LedgerEntry = z.infer<typeof entrySchema>;

/** One attempt at delivery. */
export interface AttemptRecord {
  readonly atMs: number;
  readonly code: string;
  readonly durationMs: number;
  readonly outcome: AttemptOutcome;
}

const outcomeSchema = z.enum(["deliver", "refuse", "retry", "die"]);
type AttemptOutcome = z.infer<typeof outcomeSchema>;

/** Reads an entry from Redis' flat reply; undefined for an id without one. */
export function parseEntry(id: string, reply: unknown): LedgerEntry | undefined {
  const stored = fieldsOf(reply);
  return Object.keys(stored).length === 0 ? undefined : entrySchema.parse({ id, stored });
}

/** Turns [field, value, field, value …] into an object. */
export function fieldsOf(reply: unknown): Record<string, unknown> {
  const flat = z.array(z.unknown()).parse(reply);
  const fields: Record<string, unknown> = {};
  for (let at = 0; at + 1 < flat.length; at += 2) {
    fields[String(flat[at])] = flat[at + 1];
  }
  return fields;
}

function parseAttempts(log: string | undefined): AttemptRecord[] {
  const lines = log?.split("\n").filter((line) => line !== "") ?? [];
  return lines.map((line) => {
    const [atMs, code, durationMs, event] = line.split(",");
    // Lines of before outcomes were kept are of attempts that were followed by another, but for the last.
    const outcome = outcomeSchema.safeParse(event).data ?? "retry";
    return { atMs: Number(atMs), code: code ?? "", durationMs: Number(durationMs), outcome };
  });
}
