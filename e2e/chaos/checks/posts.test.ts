import { adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import type { LedgerEntry } from "@adrelay/store";
import { expect, test } from "vitest";
import type { AdEvidence } from "../evidence.ts";
import type { FaultSpan } from "../fault.ts";
import { checkOthersGoOn } from "./posts.ts";

const STALE_KEY = { kind: "stale_key", app: "worker-1" } as const;
/** A worker with an old key from 0 to 8 s, with these pauses from earlier faults. */
const spanWith = (pauses: Partial<FaultSpan["pauses"]>): FaultSpan => ({
  fault: STALE_KEY,
  pauses: { acme: 0, globe: 0, ...pauses },
  fromMs: 0,
  untilMs: 8000,
});

/** An acknowledgment of globe that the provider counts. */
function adAcceptedAt(acceptedAtMs: number, countedAtMs?: number): AdEvidence {
  // The first byte decides what the provider does.
  const id = adResponseIdSchema.parse("ff7a52c9-9c0e-4f6e-8d0a-2f6f3f0c7d11");
  const entry: LedgerEntry = {
    id,
    publisher: publisherIdSchema.parse("globe"),
    injection: undefined,
    hasTurn: false,
    state: "queued",
    textHash: undefined,
    acceptedAtMs,
    queuedAtMs: acceptedAtMs,
    attempts: 0,
    failedAttempts: 0,
    attemptLog: [],
    isLate: false,
    sizeBytes: undefined,
    finding: undefined,
    nextAttemptAtMs: undefined,
    providerError: undefined,
  };
  const post = { account: "globe", idempotencyKey: "k", bodyHash: "h", fault: undefined } as const;
  const posts =
    countedAtMs === undefined ? [] : [{ ...post, atMs: countedAtMs, decision: "counted" as const }];
  const unused = { publisherRecord: undefined, sold: undefined, view: undefined, erasure: undefined };
  return { ...unused, id, account: "globe", posts, isCounted: posts.length > 0, entry };
}

/** One every 200 ms. */
const accepted = Array.from({ length: 40 }, (_, at) => adAcceptedAt(at * 200));
const checkWith = (pauses: Partial<FaultSpan["pauses"]>, ads: readonly AdEvidence[]) =>
  checkOthersGoOn({ ads }, { sparing: [spanWith(pauses)] });

test("a fault during which nothing of an account is delivered breaks the check", () => {
  expect(checkWith({}, accepted)).toMatchObject({
    checked: 1,
    broken: ["stale_key: nothing of globe went out in 8000 ms"],
  });
  expect(checkWith({}, [...accepted, adAcceptedAt(2000, 7900)])).toMatchObject({ checked: 1, broken: [] });
});

test("what an earlier fault paused must go on after the pause, and not before", () => {
  const late = adAcceptedAt(100, 6500);
  expect(checkWith({ globe: 3000 }, [...accepted, late])).toMatchObject({ checked: 1, broken: [] });
  expect(checkWith({ globe: 3000 }, [...accepted, adAcceptedAt(100, 4000)]).broken).toHaveLength(1);
  expect(checkWith({ globe: 300_000 }, accepted)).toMatchObject({ checked: 0, broken: [] });
  expect(checkWith({ acme: 300_000 }, accepted).broken).toHaveLength(1);
});
