export interface BenchAdServerOptions {
  readonly kind: "run";
  readonly ads: number;
  /** Injections a second. */
  readonly rate: number;
  /** How long they are sent. */
  readonly seconds: number;
}

export declare const BENCH_AD_SERVER_HELP: string;
