export type FaultName =
  | "kill"
  | "freeze"
  | "long-freeze"
  | "rolling-restart"
  | "clock-skew"
  | "redis-kill"
  | "redis-restart"
  | "redis-freeze"
  | "redis-readonly"
  | "redis-oom"
  | "redis-maxclients"
  | "link-cut"
  | "link-delay"
  | "link-swallow"
  | "provider-hang"
  | "provider-reset"
  | "provider-drip"
  | "provider-garbage"
  | "provider-slow-headers"
  | "provider-half-body"
  | "provider-keep-alive-reset"
  | "provider-500"
  | "provider-503"
  | "provider-429"
  | "provider-401"
  | "provider-recoverable"
  | "provider-lost-answer";

export interface ChaosOptions {
  readonly kind: "run";
  readonly durationMs: number;
  readonly seed: number;
  /** How many runs, with the seeds that follow. */
  readonly runs: number;
  readonly faults: readonly FaultName[];
  /** Whether --faults chose them. */
  readonly isChoice: boolean;
  readonly logsDir: string | undefined;
  readonly isPlanOnly: boolean;
}

export declare const FAULT_NAMES: readonly FaultName[];
export declare const CHAOS_HELP: string;
