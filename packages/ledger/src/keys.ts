import { type AdResponseId, adResponseIdSchema, uuidOfHex } from "@adrelay/contract";

/**
 * The one place where the ledger's keys are built. All keys of a partition share its hash tag, so that a
 * script may touch them all on a Redis Cluster. There is one partition now.
 */
export interface LedgerKeys {
  /** The seven keys of every script, in the order that scripts/includes/books.lua reads. */
  forScript(member: string): string[];
  readonly entryPrefix: string;
  readonly payloadWork: string;
  /** The six keys of scripts/pulse.lua, in its order. */
  readonly forPulse: readonly string[];
  /** Hash: a running process' id to its record. */
  readonly processes: string;
  readonly dataLoss: string;
}

export function ledgerKeys(partition: string): LedgerKeys {
  const base = `{adrelay:${partition}}:`;
  const entryPrefix = `${base}e:`;
  const payloadWork = `${base}payload-work`;
  const shared = ["awaiting", "queued", "dead", "gauges", "totals"].map((name) => base + name);
  return {
    forScript: (member) => [entryPrefix + member, ...shared, payloadWork],
    entryPrefix,
    payloadWork,
    forPulse: ["heartbeat", "processes", "data-loss", "queued", "dead", "awaiting"].map(
      (name) => base + name,
    ),
    processes: `${base}processes`,
    dataLoss: `${base}data-loss`,
  };
}

/** An id as it stands in keys and indexes: without its dashes, to save memory. */
export function memberOf(id: AdResponseId): string {
  return id.replaceAll("-", "");
}

/** The id that a member stands for. */
export function idOf(member: string): AdResponseId {
  return adResponseIdSchema.parse(uuidOfHex(member));
}
