/** One run: traffic and faults, then quiet, then every check. */
import { pause } from "@adrelay/testkit";
import { checkBooks } from "./checks/books.ts";
import type { Check } from "./checks/check.ts";
import { checkFates } from "./checks/fates.ts";
import { checkPosts } from "./checks/posts.ts";
import { checkSurroundings } from "./checks/surroundings.ts";
import { gatherEvidence } from "./evidence.ts";
import { describeFault, type PlannedFault, resourcesOf } from "./fault.ts";
import { latenessMs, planFaults } from "./fault-plan.ts";
import { inflict } from "./inflict.ts";
import { startLanes } from "./lanes.ts";
import type { FaultName } from "./options.mjs";
import { Scraper } from "./scraper.ts";
import { replayExhausted, settle } from "./settle.ts";
import { Timeline } from "./timeline.ts";
import { startWorld, type World } from "./world.ts";

export interface ChaosRun {
  readonly seed: number;
  readonly durationMs: number;
  readonly faults: readonly FaultName[];
  readonly lanes: number;
  /** Between two ads of a lane. */
  readonly pauseMs: number;
  readonly deliveryAgeMaxMs: number;
  /** Where to keep the apps' log lines; nowhere if undefined. */
  readonly logsDir?: string | undefined;
  readonly say: (line: string) => void;
}

export interface ChaosResult {
  readonly checks: readonly Check[];
  readonly summary: string;
}

const LANES_FINISH_MS = 60_000;
/** After the age limit of deliveries: locks of killed workers run out, the queue looks for stalled jobs. */
const SETTLE_MARGIN_MS = 60_000;
const PROGRESS_MS = 5000;

export async function runChaos(run: ChaosRun): Promise<ChaosResult> {
  const { say } = run;
  const plan = planFaults(run);
  const world = await startWorld(run);
  const timeline = new Timeline();
  const scraper = new Scraper(world.opsUrls);
  const { records, finish } = startLanes(world, run);
  const progress = sayChanges(() => `        ${describeTraffic(records.counts)}`, say);
  try {
    await playPlan(plan, { world, timeline, say, durationMs: run.durationMs });
    say("faults are over; waiting until nothing is under way");
    const areAnswered = await finish(LANES_FINISH_MS);
    const settleMs = run.deliveryAgeMaxMs + SETTLE_MARGIN_MS + latenessMs(plan);
    const open = await settle(scraper, settleMs);
    const replayed = await replayExhausted(world, records);
    const stillOpen = await settle(scraper, settleMs);
    await scraper.stop();
    const evidence = await gatherEvidence(world, records, scraper);
    const unsettled = [
      ...(areAnswered ? [] : ["some calls had no clear answer"]),
      ...[open, stillOpen].flatMap((what) => (what === undefined ? [] : [what])),
    ];
    const checks = [
      { name: "everything settles", looked: evidence.ads.length, broken: unsettled },
      ...checkFates(evidence, world.logs),
      ...checkPosts(evidence, timeline),
      ...checkBooks(evidence),
      ...(await checkSurroundings(world, evidence, { records, scraper })),
    ];
    const posts = evidence.ads.reduce((sum, ad) => sum + ad.posts.length, 0);
    const summary = `${plan.length} faults; ${describeTraffic(records.counts)}; ${posts} posts at the provider, ${replayed} dead letters replayed, ${scraper.answered} scrapes`;
    return { checks, summary };
  } finally {
    clearInterval(progress);
    await world.dispose();
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

interface Stage {
  readonly world: World;
  readonly timeline: Timeline;
  /** Where to keep the apps' log lines; nowhere if undefined. */
  readonly logsDir?: string | undefined;
  readonly say: (line: string) => void;
  readonly durationMs: number;
}

/** Plays the plan by its times; what a fault holds is free for the next one only once all is as before. */
async function playPlan(plan: readonly PlannedFault[], stage: Stage): Promise<void> {
  const startedAtMs = performance.now();
  const busy = new Map<string, Promise<void>>();
  for (const planned of plan) {
    await pause(Math.max(startedAtMs + planned.atMs - performance.now(), 0));
    const resources = resourcesOf(planned.fault);
    const before = Promise.all(resources.map((resource) => busy.get(resource)));
    const done = before.then(() => playOne(planned, stage, startedAtMs));
    // Told at the end of the run; until then it must not count as unhandled.
    done.catch(() => {});
    for (const resource of resources) {
      busy.set(resource, done);
    }
  }
  await Promise.all(busy.values());
  await pause(Math.max(startedAtMs + stage.durationMs - performance.now(), 0));
}

async function playOne(
  planned: PlannedFault,
  { world, timeline, say }: Stage,
  startedAtMs: number,
): Promise<void> {
  const what = describeFault(planned);
  say(`${((performance.now() - startedAtMs) / 1000).toFixed(1).padStart(6)} s ${what}`);
  const span = timeline.begin(what, planned.fault);
  await inflict(world, planned.fault, planned.durationMs);
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
