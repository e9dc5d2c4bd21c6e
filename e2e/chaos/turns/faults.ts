/** The faults of a run with turns: what goes wrong and where, drawn from the seed, and when each one really ran. */
import { makeRandom, type Random } from "@adrelay/testkit";

export const TURN_APPS = ["proxy-1", "proxy-2", "worker-1", "gateway-1", "model"] as const;
export type TurnApp = (typeof TURN_APPS)[number];
export const PROXY_IDS = ["proxy-1", "proxy-2"] as const satisfies readonly TurnApp[];
export type ProxyId = (typeof PROXY_IDS)[number];

export type TurnFault =
  | { readonly kind: "kill" | "freeze"; readonly app: TurnApp }
  /** SIGTERM, and a start once it has ended. */
  | { readonly kind: "restart"; readonly app: ProxyId }
  | { readonly kind: "redis_kill" | "redis_freeze" }
  /** All connections of a proxy are closed: those to Redis, or those to the model. */
  | { readonly kind: "link_cut"; readonly app: ProxyId; readonly end: "redis" | "model" };

export interface PlannedTurnFault {
  /** Counted from the start of the traffic. */
  readonly atMs: number;
  readonly durationMs: number;
  readonly fault: TurnFault;
}

/** A fault as it really ran, by the wall clock. */
export interface TurnFaultSpan {
  readonly fault: TurnFault;
  readonly fromMs: number;
  /** Infinity while it lasts. */
  untilMs: number;
}

/** Longer than a lease: a worker settles the proxy's turns meanwhile. */
const LONG_FREEZE_MS = 23_000;
/** A freeze that is at least so long may outlive a lease. */
export const LEASE_AT_RISK_MS = 15_000;
const LEAST_MS = 200;
const MOST_MS = 2000;
const WARM_UP_MS = 500;

export interface TurnFaultOptions {
  readonly seed: number;
  /** How long new streams begin. */
  readonly trafficMs: number;
  /** With a proxy that stands still for longer than a lease, in every fourth seed. */
  readonly hasLongFreezes: boolean;
}

/** Each fault once, in an order of the seed. */
export function planTurnFaults({
  seed,
  trafficMs,
  hasLongFreezes,
}: TurnFaultOptions): readonly PlannedTurnFault[] {
  const random = makeRandom(`turn faults ${seed}`);
  const faults = random.shuffle(allFaults(random));
  const slotMs = (trafficMs - WARM_UP_MS) / faults.length;
  const planned = faults.map((fault, at) => ({
    atMs: Math.round(WARM_UP_MS + slotMs * (at + random.next())),
    durationMs: ["link_cut", "restart"].includes(fault.kind) ? 0 : random.integer(LEAST_MS, MOST_MS),
    fault,
  }));
  const frozen = { kind: "freeze", app: random.pick(PROXY_IDS) } as const;
  const isLong = hasLongFreezes && random.chance(0.25);
  const last = { atMs: Math.round(trafficMs * 0.9), durationMs: LONG_FREEZE_MS, fault: frozen };
  return isLong ? [...planned, last] : planned;
}

function allFaults(random: Random): readonly TurnFault[] {
  const oneProxy = () => random.pick(PROXY_IDS);
  return [
    ...TURN_APPS.map((app) => ({ kind: "kill", app }) as const),
    ...(["worker-1", "gateway-1", "model"] as const).map((app) => ({ kind: "freeze", app }) as const),
    { kind: "freeze", app: oneProxy() },
    { kind: "restart", app: oneProxy() },
    { kind: "redis_kill" },
    { kind: "redis_freeze" },
    { kind: "link_cut", app: oneProxy(), end: "redis" },
    { kind: "link_cut", app: oneProxy(), end: "model" },
  ];
}

/** What no other fault touches meanwhile. */
export function victimOf(fault: TurnFault): string {
  switch (fault.kind) {
    case "kill":
    case "freeze":
    case "restart":
      return fault.app;
    case "redis_kill":
    case "redis_freeze":
      return "redis";
    case "link_cut":
      return `${fault.app} to ${fault.end}`;
    default:
      return fault satisfies never;
  }
}

export function describeTurnFault({ fault, durationMs }: PlannedTurnFault): string {
  const name = fault.kind.replace("_", "-");
  const what = fault.kind.startsWith("redis") ? name : `${name} ${victimOf(fault)}`;
  return durationMs === 0 ? what : `${what} for ${(durationMs / 1000).toFixed(1)} s`;
}
