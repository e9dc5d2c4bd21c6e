/**
 * Faults that a call asks for by its header `X-Demo-Fault`, such as `status=429;times=1, gzip, cut-after=12`. It is a
 * list of faults, each with options behind semicolons. docs/demo-model.md explains all of them.
 */
import type { Filler } from "../answer/decide-reply.ts";

export const FAULT_HEADER = "x-demo-fault";

/** How an answer ends before its time, and after how many events. An answer that isn't streamed counts bytes. */
export interface EarlyEnd {
  readonly how: "cut" | "reset" | "stall" | "end" | "error_event";
  readonly after: number;
}

/** Everything that can be asked for. All of it together is possible, though not always sensible. */
export interface CallFaults {
  readonly status?: number;
  readonly isResetBeforeHeaders?: true;
  readonly headersDelayMs?: number;
  /** The status of the answer to a prompt that has an ad. */
  readonly enhancedStatus?: number;
  readonly isGzip?: true;
  readonly splitBytes?: number;
  readonly earlyEnd?: EarlyEnd;
  readonly lacksLast?: true;
  readonly usageAfterEnd?: true;
  readonly filler?: Filler;
  readonly delayMs?: number;
}

/** Which calls have a fault: all of them, or the first ones of those that are alike. */
type FaultShare =
  | { readonly kind: "every" }
  | { readonly kind: "first"; readonly calls: number; readonly by: AlikeBy };

/** What makes calls alike. */
export type AlikeBy =
  | { readonly kind: "whole_body" }
  | { readonly kind: "header"; readonly name: string }
  | { readonly kind: "body"; readonly member: string };

export interface ScriptedFault {
  /** The fault as it was written, without its options. Only faults of the same text share a count. */
  readonly text: string;
  readonly faults: CallFaults;
  readonly share: FaultShare;
}

export type FaultScriptResult =
  | { readonly kind: "ok"; readonly faults: readonly ScriptedFault[] }
  | { readonly kind: "faulty"; readonly message: string };

const EVENTS_MAX = 100_000;
const SIZE_CHARS_MAX = 1024 * 1024;
/** Of all events together. */
const FILLER_CHARS_MAX = 64 * 1024 * 1024;
const DEFAULT_SIZE_CHARS = 40;
const MARK = /^[\w-]{1,64}$/;
const WAIT_MS_MAX = 600_000;
const BYTES_MAX = 1024 * 1024;

type Options = ReadonlyMap<string, string>;
/** Reads the value of a fault; undefined if it isn't valid. */
type ReadFault = (value: string, options: Options) => CallFaults | undefined;

const flag =
  (faults: CallFaults): ReadFault =>
  (value) =>
    value === "" ? faults : undefined;

const number =
  (min: number, max: number, faultsOf: (value: number) => CallFaults): ReadFault =>
  (value) => {
    const read = readNumber(value, min, max);
    return read === undefined ? undefined : faultsOf(read);
  };

const earlyEnd = (how: EarlyEnd["how"]) =>
  number(0, Number.MAX_SAFE_INTEGER, (after) => ({ earlyEnd: { how, after } }));

const FAULTS: ReadonlyMap<string, ReadFault> = new Map([
  ["status", number(400, 599, (status) => ({ status }))],
  ["reset-before-headers", flag({ isResetBeforeHeaders: true })],
  ["slow-headers", number(0, WAIT_MS_MAX, (headersDelayMs) => ({ headersDelayMs }))],
  ["refuse-enhanced", number(400, 499, (enhancedStatus) => ({ enhancedStatus }))],
  ["gzip", flag({ isGzip: true })],
  [
    "split",
    (value) =>
      value === "every-byte"
        ? { splitBytes: 1 }
        : number(1, BYTES_MAX, (splitBytes) => ({ splitBytes }))(value, NONE),
  ],
  ["cut-after", earlyEnd("cut")],
  ["reset-after", earlyEnd("reset")],
  ["stall-after", earlyEnd("stall")],
  ["end-after", earlyEnd("end")],
  ["error-event-after", earlyEnd("error_event")],
  ["no-done", flag({ lacksLast: true })],
  ["usage-after-end", flag({ usageAfterEnd: true })],
  ["events", readFiller],
  ["delay", number(0, WAIT_MS_MAX, (delayMs) => ({ delayMs }))],
]);

const NONE: Options = new Map();
const OPTIONS: ReadonlySet<string> = new Set(["times", "by", "size", "mark"]);
/** More than anybody needs for one call. */
const FAULTS_MAX = 20;

/** Parses the header. An empty one is no fault. */
export function parseFaultScript(header: string): FaultScriptResult {
  const clauses = header
    .split(",")
    .map((clause) => clause.trim())
    .filter((clause) => clause !== "");
  if (clauses.length > FAULTS_MAX) {
    return { kind: "faulty", message: `${FAULT_HEADER}: at most ${FAULTS_MAX} faults` };
  }
  const faults: ScriptedFault[] = [];
  for (const clause of clauses) {
    const fault = parseClause(clause);
    if (fault === undefined) {
      return { kind: "faulty", message: `${FAULT_HEADER}: ${clause} is no fault of the demo model` };
    }
    faults.push(fault);
  }
  return { kind: "ok", faults };
}

function parseClause(clause: string): ScriptedFault | undefined {
  const [text = "", ...rest] = clause.split(";").map((part) => part.trim());
  const [name, value] = splitAt(text);
  const options: Options = new Map(rest.map(splitAt));
  const faults = FAULTS.get(name)?.(value, options);
  const share = readShare(options);
  const areKnown = [...options.keys()].every((option) => OPTIONS.has(option));
  return faults === undefined || share === undefined || !areKnown ? undefined : { text, faults, share };
}

function splitAt(text: string): [string, string] {
  const at = text.indexOf("=");
  return at < 0 ? [text, ""] : [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

function readNumber(text: string, min: number, max: number): number | undefined {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
}

function readFiller(value: string, options: Options): CallFaults | undefined {
  const events = readNumber(value, 0, EVENTS_MAX);
  const sizeChars = readNumber(options.get("size") ?? String(DEFAULT_SIZE_CHARS), 1, SIZE_CHARS_MAX);
  const mark = options.get("mark");
  const isFaulty =
    events === undefined ||
    sizeChars === undefined ||
    events * sizeChars > FILLER_CHARS_MAX ||
    (mark !== undefined && !MARK.test(mark));
  return isFaulty ? undefined : { filler: { events, sizeChars, ...(mark === undefined ? {} : { mark }) } };
}

function readShare(options: Options): FaultShare | undefined {
  const times = options.get("times");
  const by = readBy(options.get("by"));
  if (times === undefined) {
    return options.has("by") ? undefined : { kind: "every" };
  }
  const calls = readNumber(times, 1, EVENTS_MAX);
  return calls === undefined || by === undefined ? undefined : { kind: "first", calls, by };
}

function readBy(text: string | undefined): AlikeBy | undefined {
  if (text === undefined) {
    return { kind: "whole_body" };
  }
  const [, place, name = ""] = /^(header|body)\.([\w.-]{1,100})$/.exec(text) ?? [];
  switch (place) {
    case "header":
      return { kind: "header", name: name.toLowerCase() };
    case "body":
      return { kind: "body", member: name };
    default:
      return undefined;
  }
}
