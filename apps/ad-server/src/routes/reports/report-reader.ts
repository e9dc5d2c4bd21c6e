import { API_KEY_HEADER } from "@adrelay/contract";
import type { Request } from "express";
import type { ApiKeys } from "../../api-keys.ts";

/** Who reads a report: a publisher its own numbers, the operator everybody's. */
export type ReportReader =
  | { readonly kind: "operator" }
  | { readonly kind: "publisher"; readonly publisher: string };

export interface ReportKeys {
  readonly keys: ApiKeys;
  readonly operatorKeys: ApiKeys;
}

/** Undefined for a key that is neither's. */
export function readerOf({ keys, operatorKeys }: ReportKeys, request: Request): ReportReader | undefined {
  const key = request.get(API_KEY_HEADER);
  if (operatorKeys.publisherOf(key) !== undefined) {
    return { kind: "operator" };
  }
  const publisher = keys.publisherOf(key);
  return publisher === undefined ? undefined : { kind: "publisher", publisher };
}
