/** The faults of a run: what goes wrong, where, and when each one really ran. */
import type { FaultName } from "./options.mjs";

export const APP_IDS = ["gateway-1", "gateway-2", "worker-1", "worker-2"] as const;
export type AppId = (typeof APP_IDS)[number];
export const ACCOUNTS = ["acme", "globe"] as const;
export type Account = (typeof ACCOUNTS)[number];
/** Each app has its own connections to Redis and to the provider. */
export type LinkEnd = "redis" | "provider";

export type Fault =
  | { readonly kind: "kill" | "freeze"; readonly app: AppId }
  | { readonly kind: "rolling_restart"; readonly everyMs: number }
  /** The app is restarted with a wrong clock, and in the end with the right one. */
  | { readonly kind: "clock_skew"; readonly app: AppId; readonly skewMs: number }
  /** The worker is restarted with keys that the provider refuses, and in the end with the right ones. */
  | { readonly kind: "stale_key"; readonly app: AppId }
  /** Callers' keys are rotated by the publishers' files, and files are broken meanwhile. */
  | { readonly kind: "reload" }
  /** An operator erases acknowledgments that are queued or dead, one after the other. */
  | { readonly kind: "erase"; readonly pauseMs: number }
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
      /** The share of calls that it hits, from 0 to 1. */
      readonly share: number;
    };
/** An erasure of an acknowledgment. `asked`: the operator got no answer, so nobody knows. */
export type Erasure = "asked" | "confirmed";
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
  | "lost_answer"
  | "edge_404"
  | "edge_login"
  | "gzip"
  | "continue"
  | TargetedFault;
/** Faults that hit some acknowledgments again and again, and no others. */
type TargetedFault = "one_429" | "many_403" | "waf_403";
const TARGETED = new Set<ProviderFault>(["one_429", "many_403", "waf_403"] satisfies TargetedFault[]);

export interface PlannedFault {
  readonly name: FaultName;
  /** Counted from the start of the traffic. */
  readonly atMs: number;
  readonly durationMs: number;
  readonly fault: Fault;
}

/** What no other fault may touch while this one lasts. */
export function resourcesOf(fault: Fault): readonly string[] {
  switch (fault.kind) {
    case "kill":
    case "freeze":
    case "clock_skew":
      return [`app:${fault.app}`];
    case "rolling_restart":
      return APP_IDS.map((app) => `app:${app}`);
    case "stale_key":
      return DELIVERY;
    case "reload":
      // A gateway that starts with a broken file ends at once.
      return GATEWAY_IDS.map((app) => `app:${app}`);
    case "erase":
      return ["erase"];
    case "redis":
      return ["redis"];
    case "link_cut":
    case "link_delay":
    case "link_swallow":
      return [`link:${fault.app}:${fault.end}`];
    case "provider":
      return mustSpareOthers(fault) ? DELIVERY : fault.accounts.map((account) => `provider:${account}`);
    default:
      return fault satisfies never;
  }
}

/** Whether deliveries of other acknowledgments must go on during a fault. Then no other fault may stop them. */
export function mustSpareOthers(fault: Fault): boolean {
  return fault.kind === "stale_key" || (fault.kind === "provider" && TARGETED.has(fault.how));
}

export const GATEWAY_IDS = ["gateway-1", "gateway-2"] as const satisfies readonly AppId[];
const WORKER_IDS = ["worker-1", "worker-2"] as const satisfies readonly AppId[];

/** The workers that can deliver during a fault that spares others. */
export function deliveringWorkers(fault: Fault): readonly AppId[] {
  return WORKER_IDS.filter((app) => fault.kind !== "stale_key" || fault.app !== app);
}

/** All that a delivery needs. */
const DELIVERY: readonly string[] = [
  "redis",
  ...ACCOUNTS.map((account) => `provider:${account}`),
  ...WORKER_IDS.flatMap((app) => [`app:${app}`, `link:${app}:redis`, `link:${app}:provider`]),
];

export function describeFault({ name, durationMs, fault }: PlannedFault): string {
  const lasting = durationMs > 0 ? ` for ${(durationMs / 1000).toFixed(1)} s` : "";
  return `${name} ${detailOf(fault)}${lasting}`.replace(/ +/g, " ");
}

function detailOf(fault: Fault): string {
  switch (fault.kind) {
    case "kill":
    case "freeze":
      return fault.app;
    case "stale_key":
      return fault.app;
    case "clock_skew":
      return `${fault.app} by ${fault.skewMs / 1000} s`;
    case "rolling_restart":
      return `every ${fault.everyMs / 1000} s`;
    case "redis":
    case "reload":
      return "";
    case "erase":
      return `one every ${fault.pauseMs} ms`;
    case "link_cut":
    case "link_swallow":
      return `${fault.app} to ${fault.end}`;
    case "link_delay":
      return `${fault.app} to ${fault.end} by ${fault.delayMs} ms`;
    case "provider":
      return `${fault.accounts.join(" and ")}, ${mustSpareOthers(fault) ? "some acknowledgments" : `${fault.share * 100} % of calls`}`;
    default:
      return fault satisfies never;
  }
}

/** Until when no worker may call an account, by the wall clock: an earlier fault has opened its circuit breakers. */
export type Pauses = Readonly<Record<Account, number>>;
const NO_PAUSES: Pauses = { acme: 0, globe: 0 };

/** A fault as it really ran, by the wall clock. */
export interface FaultSpan {
  readonly fault: Fault;
  /** As they were when it began. */
  readonly pauses: Pauses;
  readonly fromMs: number;
  /** Infinity while it lasts. */
  untilMs: number;
}

/** When each fault really ran. A check allows some exceptions only during a fault. */
export class Timeline {
  readonly #spans: FaultSpan[] = [];

  begin(fault: Fault, pauses = NO_PAUSES): FaultSpan {
    const span = { fault, pauses, fromMs: Date.now(), untilMs: Number.POSITIVE_INFINITY };
    this.#spans.push(span);
    return span;
  }

  end(span: FaultSpan): void {
    span.untilMs = Date.now();
  }

  /** Faults during which deliveries of other acknowledgments had to go on. */
  get sparing(): readonly FaultSpan[] {
    return this.#spans.filter(({ fault }) => mustSpareOthers(fault));
  }

  /** Faults that ran at any time between two moments. */
  during(fromMs: number, untilMs: number): readonly FaultSpan[] {
    return this.#spans.filter((span) => span.fromMs <= untilMs && span.untilMs >= fromMs);
  }
}
