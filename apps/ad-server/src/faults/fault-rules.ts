/**
 * Faults on purpose, for tests of the ad server's callers. A setting such as
 *
 *     acknowledge:recoverable_error*3; acknowledge:429*2(retry_after=1); any:hang@5%(seed=7)
 *
 * is a list of rules `operation:fault[*N|@P%][(option=value,...)]`. The README explains each part.
 */
export const FAULT_OPERATIONS = ["start", "acknowledge"] as const;
export type FaultOperation = (typeof FAULT_OPERATIONS)[number];

export type Fault =
  | { readonly kind: "recoverable_error" }
  | { readonly kind: "status"; readonly status: number; readonly retryAfterS: number | undefined }
  | { readonly kind: "hang" }
  | { readonly kind: "reset" }
  | { readonly kind: "drip" };

/** Which of the calls that reach a rule it takes. */
export type FaultShare =
  | { readonly kind: "every" }
  | { readonly kind: "first"; readonly calls: number }
  | { readonly kind: "percent"; readonly percent: number; readonly seed: number };

export interface FaultRule {
  readonly operations: readonly FaultOperation[];
  readonly fault: Fault;
  readonly share: FaultShare;
}

export type FaultRulesResult =
  | { readonly kind: "ok"; readonly rules: readonly FaultRule[] }
  | { readonly kind: "faulty"; readonly faults: readonly string[] };

/** Percentages without a seed use this one: two runs see the same calls fail. */
const DEFAULT_SEED = 1;
const RULE =
  /^(?<operation>\w+)\s*:\s*(?<fault>\w+)\s*(?:\*\s*(?<calls>\d{1,9})|@\s*(?<percent>\d{1,3}(?:\.\d+)?)\s*%)?\s*(?:\((?<options>[^()]*)\))?$/;
const OPTIONS = ["retry_after", "seed"] as const;

type Checked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly why: string };
const good = <T>(value: T): Checked<T> => ({ ok: true, value });
const bad = (why: string): Checked<never> => ({ ok: false, why });

/** Reads a list of rules; each rule that can't be read is reported with its text and why. */
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
    return bad("must read operation:fault, then perhaps *N or @P%, then perhaps (option=value,...)");
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
    ? bad("recoverable_error is an answer of acknowledge alone")
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
    return bad("retry_after goes with a status only");
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
    return bad("seed goes with a share (@P%) only");
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
