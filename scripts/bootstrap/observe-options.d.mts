export interface ObserveOptions {
  readonly kind: "run";
  readonly durationMs: number;
  /** Whether it goes on until it is stopped. */
  readonly isKept: boolean;
}

export declare const OBSERVE_HELP: string;
