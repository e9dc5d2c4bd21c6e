/** What the provider saw. */
import type { AdEvidence, Evidence } from "../evidence.ts";
import type { AckPost } from "../provider-books.ts";
import type { FaultSpan, Timeline } from "../timeline.ts";
import { DELIVERY_TIMEOUT_MS } from "../world.ts";
import { type Check, checkAds } from "./check.ts";

const endedAtMsOf = ({ entry }: AdEvidence) =>
  entry !== undefined && "endedAtMs" in entry ? entry.endedAtMs : undefined;

const isPosted = ({ posts }: AdEvidence) => posts.length > 0;

export function checkPosts({ ads }: Evidence, timeline: Timeline): readonly Check[] {
  const isEnded = (ad: AdEvidence) => endedAtMsOf(ad) !== undefined && ad.posts.length > 0;
  return [
    checkAds("the provider took each once at most", ads, isPosted, ({ posts }) => {
      const times = posts.filter(({ verdict }) => verdict === "taken").length;
      return times > 1 ? `taken ${times} times` : undefined;
    }),
    checkAds("each attempt has the bytes that were accepted", ads, isPosted, bytesFault),
    checkAds("each attempt has the same idempotency key", ads, isPosted, keyFault),
    checkKeysApart(ads),
    checkAds("each goes to its publisher's account", ads, isPosted, ({ account, posts }) =>
      posts.every((post) => post.account === account)
        ? undefined
        : `posted to another account than ${account}`,
    ),
    checkAds("nothing is posted once its end is booked", ads, isEnded, (ad) => latePostFault(ad, timeline)),
  ];
}

function bytesFault({ posts, lane }: AdEvidence): string | undefined {
  const posted = new Set(posts.map(({ bodyHash }) => bodyHash));
  const [hash = ""] = posted;
  if (posted.size > 1) {
    return `${posted.size} different bodies were posted`;
  }
  if (lane?.sent.has(hash) !== true) {
    return "posted a body that nobody sent";
  }
  return lane.accepted.size === 0 || lane.accepted.has(hash)
    ? undefined
    : "posted another body than was accepted";
}

function keyFault({ posts, lane }: AdEvidence): string | undefined {
  const keys = new Set(posts.map(({ idempotencyKey }) => idempotencyKey));
  const [key = ""] = keys;
  if (keys.size > 1) {
    return `posted with ${keys.size} keys`;
  }
  return lane === undefined || lane.ackIds.size === 0 || lane.ackIds.has(key)
    ? undefined
    : "posted with another key than the ad_ack_id that its publisher was told";
}

function checkKeysApart(ads: readonly AdEvidence[]): Check {
  const idsByKey = new Map<string, Set<string>>();
  for (const { id, posts } of ads) {
    for (const { idempotencyKey } of posts) {
      idsByKey.set(idempotencyKey, (idsByKey.get(idempotencyKey) ?? new Set()).add(id));
    }
  }
  const shared = [...idsByKey].filter(([, ids]) => ids.size > 1);
  return {
    name: "no two share an idempotency key",
    looked: idsByKey.size,
    broken: shared.map(([key, ids]) => `${key}: ${[...ids].join(" and ")}`),
  };
}

/** A connection that was swallowed is given up after so long at the latest. */
const SWALLOWED_MAX_MS = 25_000;
/** Between the ledger's clock and the provider's, both of this machine: rounding to milliseconds. */
const CLOCK_TOLERANCE_MS = 5;

/**
 * The ledger is asked before each attempt, so nothing is posted after the end is booked (invariants 3 and 5),
 * but for an attempt that was under way in a second worker. That happens only to a worker whose lock on the
 * job was taken from it or whose answers got lost: between the attempt that ended it and the late one such a
 * fault must have run, and the late one must come within an attempt's own time, the faults' time left out.
 */
function latePostFault(ad: AdEvidence, timeline: Timeline): string | undefined {
  const { posts } = ad;
  const endedAtMs = endedAtMsOf(ad) ?? 0;
  const late = posts.filter((post) => post.atMs > endedAtMs + CLOCK_TOLERANCE_MS);
  const firstAtMs = posts[0]?.atMs ?? 0;
  return late
    .map((post) => unexplained(post, { firstAtMs, endedAtMs }, timeline))
    .find((wrong) => wrong !== undefined);
}

function unexplained(
  post: AckPost,
  { firstAtMs, endedAtMs }: { readonly firstAtMs: number; readonly endedAtMs: number },
  timeline: Timeline,
): string | undefined {
  const spans = timeline.during(firstAtMs - SWALLOWED_MAX_MS, post.atMs).filter(canHoldUp);
  const heldUpMs = spans.reduce((sum, span) => sum + overlapMs(span, firstAtMs, post.atMs), 0);
  const lateMs = post.atMs - endedAtMs;
  return spans.length > 0 && lateMs <= DELIVERY_TIMEOUT_MS + heldUpMs
    ? undefined
    : `posted ${lateMs} ms after its end was booked (${post.verdict})`;
}

/** Faults of the provider alone hold no attempt up beyond its own bound. */
const canHoldUp = ({ fault }: FaultSpan) => fault.kind !== "provider";

function overlapMs({ fault, fromMs, untilMs }: FaultSpan, startMs: number, endMs: number): number {
  const lastsMs = fault.kind === "link_swallow" ? SWALLOWED_MAX_MS : 0;
  return Math.max(Math.min(untilMs + lastsMs, endMs) - Math.max(fromMs, startMs), 0);
}
