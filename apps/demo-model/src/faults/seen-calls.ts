/** Counts calls that are alike, for faults that only the first of them have. */
import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { AlikeBy, CallFaults, ScriptedFault } from "./call-faults.ts";

/** What a call is known by. */
export interface SeenCall {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly body: unknown;
}

/** The oldest counts are forgotten first. */
const COUNTS_MAX = 10_000;

export class SeenCalls {
  readonly #counts = new Map<string, number>();

  /** The faults of this call, all together. It is counted for each fault that only the first calls have. */
  faultsOf(call: SeenCall, script: readonly ScriptedFault[]): CallFaults {
    const due = script.filter(({ share, text }) => {
      switch (share.kind) {
        case "every":
          return true;
        case "first":
          return this.#count(`${call.path} ${text} ${keyOf(call, share.by)}`) <= share.calls;
        default:
          return share satisfies never;
      }
    });
    return Object.assign({}, ...due.map(({ faults }) => faults));
  }

  #count(key: string): number {
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.delete(key);
    this.#counts.set(key, count);
    if (this.#counts.size > COUNTS_MAX) {
      this.#counts.delete(this.#counts.keys().next().value ?? key);
    }
    return count;
  }
}

function keyOf({ headers, bytes, body }: SeenCall, by: AlikeBy): string {
  switch (by.kind) {
    case "whole_body":
      return createHash("sha256").update(bytes).digest("hex");
    case "header":
      return `header ${String(headers[by.name])}`;
    case "body":
      return `member ${JSON.stringify(memberOf(body, by.member.split(".")))}`;
    default:
      return by satisfies never;
  }
}

function memberOf(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => Object(inner)[name], value);
}
