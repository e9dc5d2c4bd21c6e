/**
 * The plan of a run's faults, made before the run: the same seed, length and choice of faults give the same plan.
 *
 * - Each chosen fault comes once before any comes again, so that a short run shows many.
 * - Up to four faults run at the same time, never two on the same victim.
 */

import { makeRandom, type Random } from "@adrelay/testkit";
import {
  ACCOUNTS,
  APP_IDS,
  type AppId,
  type Fault,
  type PlannedFault,
  type ProviderFault,
  type RedisFault,
  resourcesOf,
} from "./fault.ts";
import type { FaultName } from "./options.mjs";

const WORKER_IDS: readonly AppId[] = ["worker-1", "worker-2"];

export interface PlanOptions {
  readonly seed: number;
  readonly durationMs: number;
  readonly faults: readonly FaultName[];
}

/** How long a worker holds its lock on a job: DELIVERY_TIMEOUT_MS of a run, and ten seconds that the queue adds. */
const JOB_LOCK_MS = 11_000;
const CLOCK_SKEWS_MS = [-300_000, -30_000, 30_000, 300_000];
/**
 * A delayed job waits by the clock of the worker that delayed it. If that clock was ahead, the job comes too late.
 * Other workers bring it back within seconds, in rare cases within two minutes. So in short runs no worker's clock is
 * ahead.
 */
const WORKER_AHEAD_FROM_MS = 120_000;
const BROUGHT_BACK_WITHIN_MS = 120_000;
const WARM_UP_MS = 1000;
/** No fault begins in the last moments of the run. */
const LEAST_MS = 200;
const OVERLAPS_MAX = 4;
const GAP_MAX_MS = 1200;
/** If no fault can begin, the planner moves on by this time. */
const WAIT_MS = 200;

/** How a fault is drawn: its shortest and longest duration, and what it does. */
type Draw = readonly [minMs: number, maxMs: number, draw: (random: Random, runMs: number) => Fault];

const onLink = (random: Random) => ({
  app: random.pick(APP_IDS),
  end: random.pick(["redis", "redis", "provider"] as const),
});
const redis = (how: RedisFault) => (): Fault => ({ kind: "redis", how });
const provider = (how: ProviderFault) => (random: Random) =>
  ({
    kind: "provider",
    how,
    accounts: random.pick([["acme"], ["globe"], ACCOUNTS] as const),
    share: random.pick([0.3, 0.7, 1]),
  }) as const;

function skewClock(random: Random, runMs: number): Fault {
  const app = random.pick(APP_IDS);
  const mayBeAhead = runMs >= WORKER_AHEAD_FROM_MS || !WORKER_IDS.includes(app);
  const skewMs = random.pick(CLOCK_SKEWS_MS.filter((skew) => skew < 0 || mayBeAhead));
  return { kind: "clock_skew", app, skewMs };
}

const DRAWS: Readonly<Record<FaultName, Draw>> = {
  kill: [0, 3000, (random) => ({ kind: "kill", app: random.pick(APP_IDS) })],
  freeze: [500, 5000, (random) => ({ kind: "freeze", app: random.pick(APP_IDS) })],
  "long-freeze": [
    JOB_LOCK_MS + 1000,
    15_000,
    // Workers more often, because their locks expire.
    (random) => ({ kind: "freeze", app: random.pick([...APP_IDS, ...WORKER_IDS]) }),
  ],
  "rolling-restart": [6000, 15_000, () => ({ kind: "rolling_restart", everyMs: 3000 })],
  "clock-skew": [3000, 15_000, skewClock],
  "redis-kill": [100, 2000, redis("kill")],
  "redis-restart": [0, 1000, redis("restart")],
  "redis-freeze": [500, 5000, redis("freeze")],
  "redis-readonly": [300, 3000, redis("readonly")],
  "redis-oom": [300, 3000, redis("oom")],
  "redis-maxclients": [300, 3000, redis("maxclients")],
  "link-cut": [0, 0, (random) => ({ kind: "link_cut", ...onLink(random) })],
  "link-delay": [
    500,
    4000,
    (random) => ({ kind: "link_delay", ...onLink(random), delayMs: random.integer(5, 900) }),
  ],
  "link-swallow": [1000, 5000, (random) => ({ kind: "link_swallow", ...onLink(random) })],
  "provider-hang": [500, 4000, provider("hang")],
  "provider-reset": [500, 4000, provider("reset")],
  "provider-drip": [500, 4000, provider("drip")],
  "provider-garbage": [500, 3000, provider("garbage")],
  "provider-slow-headers": [500, 4000, provider("slow_headers")],
  "provider-half-body": [500, 3000, provider("half_body")],
  "provider-keep-alive-reset": [500, 4000, provider("keep_alive_reset")],
  "provider-500": [500, 5000, provider("http_500")],
  "provider-503": [500, 4000, provider("http_503")],
  "provider-429": [500, 4000, provider("http_429")],
  "provider-401": [300, 1500, provider("http_401")],
  "provider-recoverable": [500, 4000, provider("recoverable")],
  "provider-lost-answer": [500, 4000, provider("lost_answer")],
  "edge-404": [500, 4000, provider("edge_404")],
  "edge-login": [500, 4000, provider("edge_login")],
  gzip: [500, 4000, provider("gzip")],
  continue: [500, 4000, provider("continue")],
  "one-429": [2500, 4000, provider("one_429")],
  "many-403": [2500, 4000, provider("many_403")],
  "waf-403": [2500, 4000, provider("waf_403")],
  reload: [1500, 3000, () => ({ kind: "reload" })],
  "stale-key": [3000, 6000, (random) => ({ kind: "stale_key", app: random.pick(WORKER_IDS) })],
  erase: [1000, 4000, (random) => ({ kind: "erase", pauseMs: random.integer(20, 200) })],
};

/** Draws the plan, ordered by start. */
export function planFaults({ seed, durationMs, faults }: PlanOptions): readonly PlannedFault[] {
  const random = makeRandom(`plan ${seed}`);
  const plan: PlannedFault[] = [];
  let bag: FaultName[] = [];
  for (let clockMs = WARM_UP_MS; clockMs < durationMs - LEAST_MS && faults.length > 0; ) {
    bag = bag.length > 0 ? bag : random.shuffle(faults);
    const running = plan.filter((one) => one.atMs + one.durationMs >= clockMs).map(({ fault }) => fault);
    const drawn = running.length < OVERLAPS_MAX ? drawOne(bag, running, { random, durationMs }) : undefined;
    if (drawn === undefined) {
      clockMs += WAIT_MS;
    } else {
      bag = bag.filter((name) => name !== drawn.name);
      // The run's end cuts a long fault short.
      plan.push({ ...drawn, atMs: clockMs, durationMs: Math.min(drawn.durationMs, durationMs - clockMs) });
      clockMs += random.integer(100, GAP_MAX_MS);
    }
  }
  return plan;
}

/** The next fault of the bag whose victims have no other fault. Undefined if there is none. */
function drawOne(
  bag: readonly FaultName[],
  running: readonly Fault[],
  { random, durationMs: runMs }: { readonly random: Random; readonly durationMs: number },
): Omit<PlannedFault, "atMs"> | undefined {
  const occupied = new Set(running.flatMap(resourcesOf));
  for (const name of bag) {
    const [minMs, maxMs, draw] = DRAWS[name];
    const fault = draw(random, runMs);
    if (!resourcesOf(fault).some((resource) => occupied.has(resource))) {
      return { name, durationMs: random.integer(minMs, maxMs), fault };
    }
  }
  return undefined;
}

/** How late jobs may be in the end: not at all, unless a worker's clock was ahead. */
export function latenessMs(plan: readonly PlannedFault[]): number {
  const wasAhead = plan.some(
    ({ fault }) => fault.kind === "clock_skew" && fault.skewMs > 0 && WORKER_IDS.includes(fault.app),
  );
  return wasAhead ? BROUGHT_BACK_WITHIN_MS : 0;
}
