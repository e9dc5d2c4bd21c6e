/** What can go wrong in a run, and on what. */
import type { FaultName } from "./options.mjs";

export const APP_IDS = ["gateway-1", "gateway-2", "worker-1", "worker-2"] as const;
export type AppId = (typeof APP_IDS)[number];
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
