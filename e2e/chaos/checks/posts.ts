/** What was posted to the provider. */
import { acknowledgedOf } from "@adrelay/store";
import type { AdEvidence, Evidence } from "../evidence.ts";
import { ACCOUNTS, type Account, type FaultSpan, type Timeline } from "../fault.ts";
import { type AckPost, ruleFor } from "../provider-records.ts";
import { DELIVERY_TIMEOUT_MS } from "../stack.ts";
import { type Check, checkAds } from "./check.ts";

const endedAtMsOf = ({ entry }: AdEvidence) =>
  entry !== undefined && "endedAtMs" in entry ? entry.endedAtMs : undefined;

const isPosted = ({ posts }: AdEvidence) => posts.length > 0;

export function checkPosts({ ads }: Evidence, timeline: Timeline): readonly Check[] {
  // An erasure doesn't wait for an attempt that is under way.
  const isEnded = (ad: AdEvidence) =>
    endedAtMsOf(ad) !== undefined && ad.posts.length > 0 && ad.erasure === undefined;
  return [
    checkAds("the provider counted each at most once", ads, isPosted, ({ posts }) => {
      const times = posts.filter(({ decision }) => decision === "counted").length;
      return times > 1 ? `counted ${times} times` : undefined;
    }),
    checkAds("each attempt has the bytes that were accepted", ads, isPosted, bytesFault),
    checkAds("all attempts of an id have one idempotency key", ads, isPosted, keyFault),
    checkKeysApart(ads),
    checkAds("each attempt goes to its publisher's account", ads, isPosted, ({ account, posts }) =>
      posts.every((post) => post.account === account)
        ? undefined
        : `posted to another account than ${account}`,
    ),
    checkAds("nothing is posted after its end was booked", ads, isEnded, (ad) => latePostFault(ad, timeline)),
  ];
}

/** A fault that spares others may find attempts that hang, or backlogs, that earlier faults left. */
const GOES_ON_AFTER_MS = 1500;
/** What is accepted later need not be delivered before the fault ends. */
const DELIVERED_WITHIN_MS = 1000;
/** Of fewer, all may be hit by the fault. */
const ACCEPTED_MIN = 10;

/** While some acknowledgments are turned away, or one worker has an old key, the others are delivered. */
export function checkOthersGoOn({ ads }: Pick<Evidence, "ads">, timeline: Pick<Timeline, "sparing">): Check {
  const spans = timeline.sparing.flatMap((span) =>
    accountsOf(span.fault).map((account) => ({ span, account })),
  );
  const checked = spans.filter(({ span, account }) => countAccepted(ads, account, span) >= ACCEPTED_MIN);
  const broken = checked
    .filter(({ span, account }) => !hasDelivered(ads, account, span))
    .map(
      ({ span: { fault, fromMs, untilMs }, account }) =>
        `${describeSpan(fault)}: nothing of ${account} went out in ${untilMs - fromMs} ms`,
    );
  return { name: "others go on while some are turned away", checked: checked.length, broken };
}

/** Nothing is expected earlier: an earlier fault may have opened the breakers, and they wait for their next probe. */
function goesOnFromMs({ fromMs, pauses }: FaultSpan, account: Account): number {
  return Math.max(fromMs, pauses[account]) + GOES_ON_AFTER_MS;
}

function accountsOf(fault: FaultSpan["fault"]): readonly Account[] {
  return fault.kind === "provider" ? fault.accounts : ACCOUNTS;
}

/** How many acknowledgments that the provider counts were accepted early enough in the span. */
function countAccepted(ads: readonly AdEvidence[], account: Account, span: FaultSpan): number {
  return ads.filter(({ id, account: of, entry }) => {
    const acceptedAtMs = (entry && acknowledgedOf(entry)?.acceptedAtMs) ?? 0;
    const isInTime =
      acceptedAtMs >= goesOnFromMs(span, account) && acceptedAtMs <= span.untilMs - DELIVERED_WITHIN_MS;
    return of === account && isInTime && ruleFor(id).kind === "count";
  }).length;
}

function hasDelivered(ads: readonly AdEvidence[], account: Account, span: FaultSpan): boolean {
  return ads.some(({ posts }) =>
    posts.some(
      (post) =>
        post.decision === "counted" &&
        post.account === account &&
        post.atMs >= goesOnFromMs(span, account) &&
        post.atMs <= span.untilMs,
    ),
  );
}

function describeSpan(fault: FaultSpan["fault"]): string {
  return fault.kind === "provider" ? fault.how : fault.kind;
}

function bytesFault({ posts, publisherRecord }: AdEvidence): string | undefined {
  const posted = new Set(posts.map(({ bodyHash }) => bodyHash));
  const [hash = ""] = posted;
  if (posted.size > 1) {
    return `${posted.size} different bodies were posted`;
  }
  if (publisherRecord?.sent.has(hash) !== true) {
    return "posted a body that nobody sent";
  }
  return publisherRecord.accepted.size === 0 || publisherRecord.accepted.has(hash)
    ? undefined
    : "posted another body than was accepted";
}

function keyFault({ posts, publisherRecord }: AdEvidence): string | undefined {
  const keys = new Set(posts.map(({ idempotencyKey }) => idempotencyKey));
  const [key = ""] = keys;
  if (keys.size > 1) {
    return `posted with ${keys.size} keys`;
  }
  return publisherRecord === undefined || publisherRecord.ackIds.size === 0 || publisherRecord.ackIds.has(key)
    ? undefined
    : "posted with another key than the ad_ack_id that its publisher got";
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
    name: "no two ids share an idempotency key",
    checked: idsByKey.size,
    broken: shared.map(([key, ids]) => `${key}: ${[...ids].join(" and ")}`),
  };
}

/** A silent connection is replaced after this time at the latest. */
const SWALLOWED_MAX_MS = 25_000;
/** The ledger and the provider use the clock of this machine, and each rounds it to milliseconds. */
const CLOCK_TOLERANCE_MS = 5;

/**
 * A worker reads the entry before each attempt, so nothing is posted after the end was booked (invariants 3 and 5). The
 * one exception is an attempt that was under way in a second worker: one that lost its lock on the job, or whose
 * answers got lost. So a fault that can cause this must have run before the late post. And the late post must come
 * within the time limit of an attempt, not counting the time of such faults.
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
  const spans = timeline.during(firstAtMs - SWALLOWED_MAX_MS, post.atMs).filter(canDelay);
  const delayedMs = spans.reduce((sum, span) => sum + overlapMs(span, firstAtMs, post.atMs), 0);
  const lateMs = post.atMs - endedAtMs;
  return spans.length > 0 && lateMs <= DELIVERY_TIMEOUT_MS + delayedMs
    ? undefined
    : `posted ${lateMs} ms after its end was booked (${post.decision})`;
}

/** A fault of the provider delays no attempt beyond the attempt's time limit, and an erasure delays none. */
const canDelay = ({ fault }: FaultSpan) => fault.kind !== "provider" && fault.kind !== "erase";

function overlapMs({ fault, fromMs, untilMs }: FaultSpan, startMs: number, endMs: number): number {
  const silentMs = fault.kind === "link_swallow" ? SWALLOWED_MAX_MS : 0;
  return Math.max(Math.min(untilMs + silentMs, endMs) - Math.max(fromMs, startMs), 0);
}
