/**
 * Faults that are injected on purpose, to test the ad server's callers. A setting such as
 *
 *     acknowledge:recoverable_error*3; acknowledge:429*2(retry_after=1); any:hang@5%(seed=7)
 *
 * is a list of rules `operation:fault[*N|@P%][(option=value,...)]`. The README explains each part.
 */
const FAULT_OPERATIONS = ["start", "acknowledge"] as const;
export type FaultOperation = (typeof FAULT_OPERATIONS)[number];

export type Fault =
  | { readonly kind: "recoverable_error" }
  | { readonly kind: "status"; readonly status: number; readonly retryAfterS: number | undefined }
  | { readonly kind: "hang" }
  | { readonly kind: "reset" }
  | { readonly kind: "drip" };

/** Which calls a rule applies to, of the calls to which no earlier rule applies. */
type FaultShare =
  | { readonly kind: "every" }
  | { readonly kind: "first"; readonly calls: number }
  | { readonly kind: "percent"; readonly percent: number; readonly seed: number };

interface FaultRule {
  readonly operations: readonly FaultOperation[];
  readonly fault: Fault;
  readonly share: FaultShare;
}

type FaultRulesResult =
  | { readonly kind: "ok"; readonly rules: readonly FaultRule[] }
  | { readonly kind: "faulty"; readonly faults: readonly string[] };

/** The seed of a percentage without one, so that two runs fail the same calls. */
const DEFAULT_SEED = 1;
const RULE =
  /^(?<operation>\w+)\s*:\s*(?<fault>\w+)\s*(?:\*\s*(?<calls>\d{1,9})|@\s*(?<percent>\d{1,3}(?:\.\d+)?)\s*%)?\s*(?:\((?<options>[^()]*)\))?$/;
const OPTIONS = ["retry_after", "seed"] as const;

type Checked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly why: string };
const good = <T>(value: T): Checked<T> => ({ ok: true, value });
const bad = (why: string): Checked<never> => ({ ok: false, why });

/** Parses a list of rules. Each rule that can't be parsed is reported with its text and the reason. */
export function parseFaultRules(text: string): FaultRulesResult {
  const rules: FaultRule[] = [];
  const faults: string[] = [];
  for (const part of text.split(";").map((rule) => rule.trim())) {
    if (part !== "") {
      const rule = parseRule(part);
      if (rule.ok) {
        rules.push(rule.value);
      } else {
        faults.push(`rule "${part}": ${rule.why}`);
      }
    }
  }
  return faults.length === 0 ? { kind: "ok", rules } : { kind: "faulty", faults };
}

function parseRule(text: string): Checked<FaultRule> {
  const parts = RULE.exec(text)?.groups;
  if (parts === undefined) {
    return bad(
      "must read operation:fault, optionally followed by *N or @P%, then optionally by (option=value,...)",
    );
  }
  const options = parseOptions(parts["options"] ?? "");
  if (!options.ok) {
    return options;
  }
  const operations = parseOperation(parts["operation"] ?? "");
  const fault = parseFault(parts["fault"] ?? "", options.value.get("retry_after"));
  const share = parseShare(parts["calls"], parts["percent"], options.value.get("seed"));
  if (!operations.ok || !fault.ok || !share.ok) {
    return bad([operations, fault, share].flatMap((part) => (part.ok ? [] : [part.why])).join("; "));
  }
  return fault.value.kind === "recoverable_error" && operations.value.includes("start")
    ? bad("recoverable_error is an answer of acknowledge only")
    : good({ operations: operations.value, fault: fault.value, share: share.value });
}

function parseOperation(name: string): Checked<readonly FaultOperation[]> {
  const operations = FAULT_OPERATIONS.filter((operation) => name === operation || name === "any");
  return operations.length > 0 ? good(operations) : bad("the operation must be start, acknowledge or any");
}

function parseFault(name: string, retryAfterS: number | undefined): Checked<Fault> {
  if (/^[45]\d\d$/.test(name)) {
    return good({ kind: "status", status: Number(name), retryAfterS });
  }
  if (retryAfterS !== undefined) {
    return bad("retry_after needs a status as the fault");
  }
  switch (name) {
    case "recoverable_error":
    case "hang":
    case "reset":
    case "drip":
      return good({ kind: name });
    default:
      return bad("the fault must be recoverable_error, hang, reset, drip or a status from 400 to 599");
  }
}

function parseShare(calls?: string, percent?: string, seed?: number): Checked<FaultShare> {
  if (percent !== undefined) {
    return Number(percent) <= 100
      ? good({ kind: "percent", percent: Number(percent), seed: seed ?? DEFAULT_SEED })
      : bad("the share must be at most 100%");
  }
  if (seed !== undefined) {
    return bad("seed needs a share of calls (@P%)");
  }
  return good(calls === undefined ? { kind: "every" } : { kind: "first", calls: Number(calls) });
}

function parseOptions(text: string): Checked<ReadonlyMap<string, number>> {
  const options = new Map<string, number>();
  for (const part of text.split(",").map((option) => option.trim())) {
    if (part !== "") {
      const [name = "", value = ""] = part.split("=").map((side) => side.trim());
      if (!OPTIONS.some((option) => option === name) || !/^\d{1,9}$/.test(value) || options.has(name)) {
        return bad(`"${part}" must be retry_after=<seconds> or seed=<whole number>, each once`);
      }
      options.set(name, Number(value));
    }
  }
  return good(options);
}

/** Decides which call gets which fault. It counts calls, so each process has its own plan. */
export class FaultPlan {
  readonly #rules: readonly { readonly rule: FaultRule; readonly takesNext: () => boolean }[];

  constructor(rules: readonly FaultRule[]) {
    this.#rules = rules.map((rule) => ({ rule, takesNext: makeTakesNext(rule.share) }));
  }

  /** The fault of the next call, from the first rule that applies; undefined if the call is to be served. */
  next(operation: FaultOperation): Fault | undefined {
    return this.#rules.find(({ rule, takesNext }) => rule.operations.includes(operation) && takesNext())?.rule
      .fault;
  }
}

function makeTakesNext(share: FaultShare): () => boolean {
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
      const random = makeRandom(share.seed);
      return () => random() * 100 < share.percent;
    }
    default:
      return share satisfies never;
  }
}

/** The generator Mulberry32: the same seed gives the same numbers in [0, 1). */
function makeRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
