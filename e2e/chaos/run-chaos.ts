/** One run: traffic and faults, then a wait until no work is left, then all checks. */
import { pause } from "@adrelay/testkit";
import { applyFault } from "./apply-fault.ts";
import type { Check } from "./checks/check.ts";
import { checkCounters } from "./checks/counters.ts";
import { checkOutcomes } from "./checks/outcomes.ts";
import { checkOthersGoOn, checkPosts } from "./checks/posts.ts";
import { checkStoredBytes } from "./checks/stored-bytes.ts";
import { checkSystem } from "./checks/system.ts";
import { gatherEvidence } from "./evidence.ts";
import { describeFault, mustSpareOthers, type PlannedFault, resourcesOf, Timeline } from "./fault.ts";
import { latenessMs, planFaults } from "./fault-plan.ts";
import type { FaultName } from "./options.mjs";
import { loadPauses } from "./pauses.ts";
import { startTraffic } from "./publisher.ts";
import { Scraper } from "./scraper.ts";
import { replayAged, settle } from "./settle.ts";
import { type ChaosStack, startChaosStack } from "./stack.ts";

export interface ChaosRun {
  readonly seed: number;
  readonly durationMs: number;
  readonly faults: readonly FaultName[];
  readonly lanes: number;
  /** Between two ads of a lane. */
  readonly pauseMs: number;
  readonly deliveryAgeMaxMs: number;
  /** The folder for the apps' log lines. They are not kept if it is undefined. */
  readonly logsDir?: string | undefined;
  readonly say: (line: string) => void;
}

export interface ChaosResult {
  readonly checks: readonly Check[];
  readonly summary: string;
}

const TRAFFIC_END_MS = 60_000;
/** Added to DELIVERY_MAX_AGE: locks of killed workers must expire, and the queue must find their stalled jobs. */
const SETTLE_MARGIN_MS = 60_000;
const PROGRESS_MS = 5000;

export async function runChaos(run: ChaosRun): Promise<ChaosResult> {
  const { say } = run;
  const plan = planFaults(run);
  const stack = await startChaosStack(run);
  const timeline = new Timeline();
  const scraper = new Scraper(stack.opsUrls);
  const { records, end } = startTraffic(stack, run);
  const progress = sayChanges(() => `        ${describeTraffic(records.counts)}`, say);
  try {
    await playPlan(plan, { stack, timeline, say, durationMs: run.durationMs });
    say("the faults are over; waiting until no work is left");
    const areAnswered = await end(TRAFFIC_END_MS);
    const settleMs = run.deliveryAgeMaxMs + SETTLE_MARGIN_MS + latenessMs(plan);
    const left = await settle(scraper, settleMs);
    const replayed = await replayAged(stack, records, run.deliveryAgeMaxMs);
    const leftAfterReplay = await settle(scraper, settleMs);
    await scraper.stop();
    const evidence = await gatherEvidence(stack, records, scraper);
    const unsettled = [
      ...(areAnswered ? [] : ["some calls had no clear answer"]),
      ...[left, leftAfterReplay].flatMap((what) => (what === undefined ? [] : [what])),
    ];
    const checks = [
      { name: "all work ends after the faults", checked: evidence.ads.length, broken: unsettled },
      { name: "nothing dies of a fault before its age", checked: replayed.count, broken: replayed.early },
      ...checkOutcomes(evidence, stack.logs),
      checkOthersGoOn(evidence, timeline),
      ...checkPosts(evidence, timeline),
      ...checkCounters(evidence),
      await checkStoredBytes(stack),
      ...(await checkSystem(stack, evidence, { records, scraper })),
    ];
    const posts = evidence.ads.reduce((sum, ad) => sum + ad.posts.length, 0);
    const summary = `${plan.length} faults; ${describeTraffic(records.counts)}; ${posts} posts at the provider, ${replayed.count} dead letters replayed, ${scraper.answered} scrapes`;
    return { checks, summary };
  } finally {
    clearInterval(progress);
    await stack.dispose();
  }
}

function sayChanges(describe: () => string, say: (line: string) => void): NodeJS.Timeout {
  let said = "";
  return setInterval(() => {
    const now = describe();
    if (now !== said) {
      say(now);
      said = now;
    }
  }, PROGRESS_MS);
}

interface Playing {
  readonly stack: ChaosStack;
  readonly timeline: Timeline;
  readonly say: (line: string) => void;
  readonly durationMs: number;
}

/** Carries out the plan. A fault waits until earlier faults on the same victims have ended and are undone. */
async function playPlan(plan: readonly PlannedFault[], playing: Playing): Promise<void> {
  const startedAtMs = performance.now();
  const busy = new Map<string, Promise<void>>();
  for (const planned of plan) {
    await pause(Math.max(startedAtMs + planned.atMs - performance.now(), 0));
    const resources = resourcesOf(planned.fault);
    const before = Promise.all(resources.map((resource) => busy.get(resource)));
    const done = before.then(() => playOne(planned, playing, startedAtMs));
    // The `Promise.all` below reports the error; until then it must not count as unhandled.
    done.catch(() => {});
    for (const resource of resources) {
      busy.set(resource, done);
    }
  }
  await Promise.all(busy.values());
  await pause(Math.max(startedAtMs + playing.durationMs - performance.now(), 0));
}

async function playOne(
  planned: PlannedFault,
  { stack, timeline, say }: Playing,
  startedAtMs: number,
): Promise<void> {
  say(`${((performance.now() - startedAtMs) / 1000).toFixed(1).padStart(6)} s ${describeFault(planned)}`);
  const { fault } = planned;
  const span = timeline.begin(fault, mustSpareOthers(fault) ? await loadPauses(stack, fault) : undefined);
  await applyFault(stack, fault, planned.durationMs);
  timeline.end(span);
}

function describeTraffic({
  injections,
  acknowledgments,
  unanswered,
}: {
  readonly injections: number;
  readonly acknowledgments: number;
  readonly unanswered: number;
}): string {
  return `${injections} injections, ${acknowledgments} acknowledgments, ${unanswered} calls without an answer`;
}
