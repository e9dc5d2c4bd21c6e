import type { Fault, FaultOperation, FaultRule, FaultShare } from "./fault-rules.ts";

/** Decides which call gets which fault. It counts calls, so one plan belongs to one process. */
export class FaultPlan {
  readonly #rules: readonly { readonly rule: FaultRule; readonly takesNext: () => boolean }[];

  constructor(rules: readonly FaultRule[]) {
    this.#rules = rules.map((rule) => ({ rule, takesNext: takerOf(rule.share) }));
  }

  /** The fault of the next call, by the first rule that takes it; undefined to serve the call. */
  next(operation: FaultOperation): Fault | undefined {
    return this.#rules.find(({ rule, takesNext }) => rule.operations.includes(operation) && takesNext())?.rule
      .fault;
  }
}

function takerOf(share: FaultShare): () => boolean {
  switch (share.kind) {
    case "every":
      return () => true;
    case "first": {
      let left = share.calls;
      return () => {
        left -= 1;
        return left >= 0;
      };
    }
    case "percent": {
      const random = randomOf(share.seed);
      return () => random() * 100 < share.percent;
    }
    default:
      return share satisfies never;
  }
}

/** Mulberry32: the same numbers in [0, 1) for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
