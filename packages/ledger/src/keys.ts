import { type AdResponseId, adResponseIdSchema, uuidOfHex } from "@adrelay/contract";

/**
 * The one place where the ledger's keys are built. All keys of a partition share its hash tag, so that a
 * script may touch them all on a Redis Cluster. There is one partition now.
 */
export interface LedgerKeys {
  /** The seven keys of every script, in the order that scripts/includes/books.lua reads. */
  forScript(member: string): string[];
  /** The same with the first of many entries, then the other entries: see scripts/includes/batch.lua. */
  forBatch(members: readonly string[]): string[];
  readonly entryPrefix: string;
  readonly payloadWork: string;
  /** Before a publisher's id: its acknowledgments that wait for their provider. */
  readonly parkedPrefix: string;
  readonly audit: string;
  /** The keys of a script on bulk replays, in the order that scripts/includes/replay-keys.lua reads. */
  forReplay(replayId: string): string[];
  readonly replayPrefix: string;
  readonly runningReplays: string;
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
  const forScript = (member: string) => [entryPrefix + member, ...shared, payloadWork];
  const audit = `${base}audit`;
  const replayPrefix = `${base}replay:`;
  const runningReplays = `${base}replays-running`;
  return {
    forScript,
    forBatch: ([first = "", ...others]) => [
      ...forScript(first),
      ...others.map((member) => entryPrefix + member),
    ],
    entryPrefix,
    payloadWork,
    parkedPrefix: parkedPrefix(base),
    audit,
    forReplay: (id) => [...forScript(""), audit, replayPrefix + id, `${base}replays`, runningReplays],
    replayPrefix,
    runningReplays,
    forPulse: ["heartbeat", "processes", "data-loss", "queued", "dead", "awaiting"].map(
      (name) => base + name,
    ),
    processes: `${base}processes`,
    dataLoss: `${base}data-loss`,
  };
}

/** Keys of the gates of provider accounts. */
export interface GateKeys {
  /** The three keys of every gate script, in the order that scripts/includes/gate.lua reads. */
  forGate(account: string): string[];
  /** Waiting acknowledgments of a publisher. */
  parked(publisher: string): string;
  readonly busy: string;
  /** Sorted set: ids by the time of their next attempt; see scripts/includes/due.lua. */
  readonly due: string;
}

export function gateKeys(partition: string): GateKeys {
  const base = `{adrelay:${partition}}:`;
  const busy = `${base}gates`;
  return {
    forGate: (account) => [`${base}gate:${account}`, `${base}gate:${account}:released`, busy],
    parked: (publisher) => parkedPrefix(base) + publisher,
    busy,
    due: `${base}queued:due`,
  };
}

function parkedPrefix(base: string): string {
  return `${base}parked:`;
}

/** An id as it stands in keys and indexes: without its dashes, to save memory. */
export function memberOf(id: AdResponseId): string {
  return id.replaceAll("-", "");
}

/** The id that a member stands for. */
export function idOf(member: string): AdResponseId {
  return adResponseIdSchema.parse(uuidOfHex(member));
}
