/**
 * The plan of a run's faults, drawn up front: the same seed, length and choice of faults give the same plan.
 *
 * - All faults that are chosen come once before any comes again, so that a short run shows many.
 * - A fault takes what it acts on for itself until it has ended; up to four run at the same time.
 */
import type { FaultName } from "../../scripts/bootstrap/chaos-options.mjs";
import { makeRandom, type Random } from "./random.ts";

export const APP_IDS = ["gateway-1", "gateway-2", "worker-1", "worker-2"] as const;
export type AppId = (typeof APP_IDS)[number];
const WORKER_IDS = ["worker-1", "worker-2"] as const;
export const ACCOUNTS = ["acme", "globe"] as const;
export type Account = (typeof ACCOUNTS)[number];
/** Each app has connections of its own to Redis and to the provider. */
export type LinkEnd = "redis" | "provider";

export type Fault =
  | { readonly kind: "kill" | "freeze"; readonly app: AppId }
  | { readonly kind: "rolling_restart"; readonly everyMs: number }
  /** Stopped and started with another clock; in the end with the right one again. */
  | { readonly kind: "clock_skew"; readonly app: AppId; readonly skewMs: number }
  | { readonly kind: "redis"; readonly how: RedisFault }
  | { readonly kind: "link_cut" | "link_swallow"; readonly app: AppId; readonly end: LinkEnd }
  | {
      readonly kind: "link_delay";
      readonly app: AppId;
      readonly end: LinkEnd;
      readonly delayMs: number;
    }
  | {
      readonly kind: "provider";
      readonly how: ProviderFault;
      readonly accounts: readonly Account[];
      /** How many of the calls it hits. */
      readonly share: number;
    };
export type RedisFault = "kill" | "restart" | "freeze" | "readonly" | "oom" | "maxclients";
export type ProviderFault =
  | "hang"
  | "reset"
  | "drip"
  | "garbage"
  | "slow_headers"
  | "half_body"
  | "keep_alive_reset"
  | "http_500"
  | "http_503"
  | "http_429"
  | "http_401"
  | "recoverable"
  | "lost_answer";

export interface PlannedFault {
  readonly name: FaultName;
  /** Since the run's traffic began. */
  readonly atMs: number;
  readonly durationMs: number;
  readonly fault: Fault;
}

export interface PlanOptions {
  readonly seed: number;
  readonly durationMs: number;
  readonly faults: readonly FaultName[];
}

/** A worker's lock on a job: DELIVERY_TIMEOUT_MS of a run, and the ten seconds that the queue adds. */
export const JOB_LOCK_MS = 11_000;
const CLOCK_SKEWS_MS = [-300_000, -30_000, 30_000, 300_000];
const WARM_UP_MS = 1000;
/** No fault begins later than this before the end. */
const LEAST_MS = 200;
const OVERLAPS_MAX = 4;
const GAP_MAX_MS = 1200;
/** How long until it is looked again whether a fault can begin. */
const WAIT_MS = 200;

/** How a fault of each name is drawn: how long it lasts at least and at most, and what it does. */
type Draw = readonly [minMs: number, maxMs: number, draw: (random: Random) => Fault];

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

const DRAWS: Readonly<Record<FaultName, Draw>> = {
  kill: [0, 3000, (random) => ({ kind: "kill", app: random.pick(APP_IDS) })],
  freeze: [500, 5000, (random) => ({ kind: "freeze", app: random.pick(APP_IDS) })],
  "long-freeze": [
    JOB_LOCK_MS + 1000,
    15_000,
    // Workers more often: it is their locks that run out.
    (random) => ({ kind: "freeze", app: random.pick([...APP_IDS, ...WORKER_IDS]) }),
  ],
  "rolling-restart": [6000, 15_000, () => ({ kind: "rolling_restart", everyMs: 3000 })],
  "clock-skew": [
    3000,
    15_000,
    (random) => ({ kind: "clock_skew", app: random.pick(APP_IDS), skewMs: random.pick(CLOCK_SKEWS_MS) }),
  ],
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
};

/** What a fault has for itself while it lasts. */
export function resourcesOf(fault: Fault): readonly string[] {
  switch (fault.kind) {
    case "kill":
    case "freeze":
    case "clock_skew":
      return [`app:${fault.app}`];
    case "rolling_restart":
      return APP_IDS.map((app) => `app:${app}`);
    case "redis":
      return ["redis"];
    case "link_cut":
    case "link_delay":
    case "link_swallow":
      return [`link:${fault.app}:${fault.end}`];
    case "provider":
      return fault.accounts.map((account) => `provider:${account}`);
    default:
      return fault satisfies never;
  }
}

/** Draws the plan, in the order of its beginnings. */
export function planFaults({ seed, durationMs, faults }: PlanOptions): readonly PlannedFault[] {
  const random = makeRandom(`plan ${seed}`);
  const plan: PlannedFault[] = [];
  let bag: FaultName[] = [];
  for (let clockMs = WARM_UP_MS; clockMs < durationMs - LEAST_MS && faults.length > 0; ) {
    bag = bag.length > 0 ? bag : random.shuffle(faults);
    const running = plan.filter((one) => one.atMs + one.durationMs >= clockMs).map(({ fault }) => fault);
    const drawn = running.length < OVERLAPS_MAX ? drawOne(bag, running, random) : undefined;
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

/** The next fault of the bag whose victims are free; undefined if there is none at the moment. */
function drawOne(
  bag: readonly FaultName[],
  running: readonly Fault[],
  random: Random,
): Omit<PlannedFault, "atMs"> | undefined {
  const taken = new Set(running.flatMap(resourcesOf));
  for (const name of bag) {
    const [minMs, maxMs, draw] = DRAWS[name];
    const fault = draw(random);
    if (!resourcesOf(fault).some((resource) => taken.has(resource))) {
      return { name, durationMs: random.integer(minMs, maxMs), fault };
    }
  }
  return undefined;
}

export function describeFault({ name, durationMs, fault }: PlannedFault): string {
  const lasting = durationMs > 0 ? ` for ${(durationMs / 1000).toFixed(1)} s` : "";
  return `${name} ${detailOf(fault)}${lasting}`.replace(/ +/g, " ");
}

function detailOf(fault: Fault): string {
  switch (fault.kind) {
    case "kill":
    case "freeze":
      return fault.app;
    case "clock_skew":
      return `${fault.app} by ${fault.skewMs / 1000} s`;
    case "rolling_restart":
      return `every ${fault.everyMs / 1000} s`;
    case "redis":
      return "";
    case "link_cut":
    case "link_swallow":
      return `${fault.app} to ${fault.end}`;
    case "link_delay":
      return `${fault.app} to ${fault.end} by ${fault.delayMs} ms`;
    case "provider":
      return `${fault.accounts.join(" and ")}, ${fault.share * 100} % of calls`;
    default:
      return fault satisfies never;
  }
}
