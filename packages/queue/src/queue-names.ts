import { hash } from "node:crypto";
import type { AdResponseId } from "@adrelay/contract";

export const QUEUE_NAME = "acknowledgments";

/** BullMQ's keys share the hash tag of the ledger's partition. */
export function queuePrefix(partition: string): string {
  return `{adrelay:${partition}}`;
}

/** BullMQ keeps a job's name in a field of its own: it holds the text's fingerprint. */
export const FINGERPRINT_FIELD = "name";

/**
 * The job of an ad response: always the same, so that a repeat is the same job (invariant 2). Hashed,
 * since BullMQ takes no `:` in a job's id and no id of digits only.
 */
export function jobIdOf(id: AdResponseId): string {
  return `a${hash("sha256", id, "base64url").slice(0, 27)}`;
}
