/** The whole relay on one page, and the audit. */
import {
  type AuditView,
  COUNTED_STATES,
  type DataLossView,
  type ForeignCircuitView,
  type ProcessView,
  type ProviderView,
  type StateCounts,
  type Stats,
} from "@adrelay/contract";
import type { PublisherDirectory, SharedAccount } from "@adrelay/provider";
import { ADRELAY_VERSION, OVERDUE } from "@adrelay/service-kit";
import {
  type AuditEntry,
  type CircuitState,
  type DataLoss,
  type ForeignCircuit,
  gonePublishers,
  type Heartbeat,
  type IntakeRules,
  type LabelledCount,
  type RelayProcess,
  type Store,
} from "@adrelay/store";
import type { RequestHandler } from "express";
import { z } from "zod";
import type { GatewayMetrics } from "../gateway-metrics.ts";
import { askStore, isoTime, sendUnavailable } from "../store-answers.ts";
import { maySee, ownPublishers } from "./access.ts";
import { auditCursor, auditCursorSchema, limitSchema, parseForm } from "./forms.ts";
import { viewOfQuotas, viewOfStorage } from "./quotas.ts";

export interface StatsDeps {
  readonly store: Pick<Store, "snapshot" | "queueDepths" | "circuits" | "room">;
  readonly metrics: Pick<GatewayMetrics, "loadRefusals">;
  readonly rulesOf: (publisher: string) => Pick<IntakeRules, "limits">;
  readonly heartbeat: Pick<Heartbeat, "loadProcesses" | "loadLoss">;
  readonly publishers: PublisherDirectory;
}

/** GET /admin/v1/stats. An operator of some publishers sees what belongs to these. */
export function makeStatsHandler(deps: StatsDeps): RequestHandler {
  return async (_request, response) => {
    const stats = await askStore(gatherStats(deps));
    if (stats === OVERDUE) {
      sendUnavailable(response);
    } else {
      const own = ownPublishers(response);
      response.json(own === undefined ? stats : limitStats(stats, own));
    }
  };
}

async function gatherStats(deps: StatsDeps): Promise<Stats> {
  const { store, heartbeat, publishers } = deps;
  const { accounts, current } = publishers;
  const ids = new Set(accounts.map(({ id }) => id));
  const [snapshot, depths, circuits, foreign, processes, loss, refusals] = await Promise.all([
    store.snapshot(),
    store.queueDepths(),
    Promise.all(accounts.map(async (account) => ({ account, state: await store.circuits.load(account) }))),
    store.circuits.foreign(ids),
    heartbeat.loadProcesses(),
    heartbeat.loadLoss(),
    deps.metrics.loadRefusals(),
  ]);
  const configured = current.map(({ id }) => id);
  const states = sumByState(snapshot.states);
  const secondsIf = (some: number, ageMs: number) => (some > 0 ? ageMs / 1000 : null);
  return {
    at: isoTime(snapshot.nowMs),
    version: ADRELAY_VERSION,
    states,
    publishers: byPublisher(snapshot.states),
    open_turns: Object.fromEntries(snapshot.openTurns.map(({ publisher, value }) => [publisher, value])),
    overdue: snapshot.overdue,
    oldest_queued_age_seconds: secondsIf(states.queued, snapshot.oldestQueuedAgeMs),
    oldest_dead_letter_age_seconds: secondsIf(states.dead, snapshot.oldestDeadAgeMs),
    queue: depths,
    dead_letters: snapshot.deadLetters.map(({ publisher, label: reason, value: count }) => {
      return { publisher, reason, count };
    }),
    providers: circuits.map(({ account, state }) => viewOfProvider(account, state)),
    foreign_circuits: foreign.map(viewOfForeign),
    gone_publishers: gonePublishers(snapshot, configured).map(({ publisher, counts }) => {
      return { publisher, ...counts };
    }),
    storage: viewOfStorage(store.room),
    quotas: viewOfQuotas(snapshot.storedBytes, refusals, deps.rulesOf),
    processes: processes.map(viewOfProcess),
    data_loss: viewOfLoss(loss),
  };
}

/** The part of the statistics that belongs to these publishers. What belongs to the whole relay is null or empty. */
function limitStats(stats: Stats, own: readonly string[]): Stats {
  const isOwn = ({ publisher }: { readonly publisher: string }) => own.includes(publisher);
  const ownOf = <T>(all: Readonly<Record<string, T>>) =>
    Object.fromEntries(Object.entries(all).filter(([publisher]) => own.includes(publisher)));
  const publishers = ownOf(stats.publishers);
  return {
    ...stats,
    states: addUp(Object.values(publishers)),
    publishers,
    open_turns: ownOf(stats.open_turns),
    overdue: null,
    oldest_queued_age_seconds: null,
    oldest_dead_letter_age_seconds: null,
    queue: null,
    dead_letters: stats.dead_letters.filter(isOwn),
    providers: stats.providers.flatMap((one) => {
      const theirs = one.publishers.filter((publisher) => own.includes(publisher));
      // An account has the name of its first publisher, which may be another one.
      return theirs.length === 0 ? [] : [{ ...one, provider: theirs[0] ?? "", publishers: theirs }];
    }),
    foreign_circuits: [],
    gone_publishers: stats.gone_publishers.filter(isOwn),
    storage: null,
    quotas: stats.quotas.filter(isOwn),
    processes: null,
  };
}

function addUp(all: readonly StateCounts[]): StateCounts {
  const sum: StateCounts = { ...NO_COUNTS };
  for (const counts of all) {
    for (const state of COUNTED_STATES) {
      sum[state] += counts[state];
    }
  }
  return sum;
}

const NO_COUNTS = {
  awaiting: 0,
  queued: 0,
  delivered: 0,
  refused: 0,
  dead: 0,
  missed: 0,
  discarded: 0,
  expired: 0,
} as const satisfies StateCounts;

function sumByState(counts: readonly LabelledCount[]): StateCounts {
  const sum: StateCounts = { ...NO_COUNTS };
  for (const { label, value } of counts) {
    if (isCounted(label)) {
      sum[label] += value;
    }
  }
  return sum;
}

function byPublisher(counts: readonly LabelledCount[]): Record<string, StateCounts> {
  const groups = Map.groupBy(counts, ({ publisher }) => publisher);
  return Object.fromEntries([...groups].map(([publisher, own]) => [publisher, sumByState(own)]));
}

function isCounted(label: string): label is keyof StateCounts {
  return Object.hasOwn(NO_COUNTS, label);
}

function viewOfProvider({ name, publishers }: SharedAccount, state: CircuitState): ProviderView {
  const { phase, reason, sinceMs, nextProbeAtMs, parked } = state;
  return {
    provider: name,
    publishers: [...publishers],
    circuit: phase,
    reason: phase === "closed" ? null : (reason ?? null),
    since: sinceMs === 0 ? null : isoTime(sinceMs),
    next_probe_at: phase === "open" ? isoTime(nextProbeAtMs) : null,
    parked,
  };
}

function viewOfForeign({ name, reason, sinceMs, by }: ForeignCircuit): ForeignCircuitView {
  return { provider: name, reason: reason ?? null, since: isoTime(sinceMs), process: by };
}

function viewOfProcess(one: RelayProcess): ProcessView {
  return {
    role: one.role,
    host: one.host,
    pid: one.pid,
    version: one.version,
    started_at: isoTime(one.startedAtMs),
    seen_at: isoTime(one.seenAtMs),
    clock_skew_ms: one.clockSkewMs,
    publishers_file:
      one.publishersFile === undefined
        ? null
        : { digest: one.publishersFile.digest, valid: one.publishersFile.isValid },
  };
}

/** The latest loss of data; null if there is none. */
function viewOfLoss(loss: DataLoss | undefined): DataLossView | null {
  return loss === undefined ? null : { at: isoTime(loss.atMs), detail: loss.detail };
}

/** Query of a page of the audit. */
export const auditQuerySchema = z.strictObject({ limit: limitSchema, cursor: auditCursorSchema.optional() });

/**
 * GET /admin/v1/audit: who did what, newest first. An operator of some publishers sees what concerned one of these alone, so
 * a page may have fewer entries than its limit.
 */
export function makeAuditHandler(audit: Store["audit"]): RequestHandler {
  return async (request, response) => {
    const query = parseForm(auditQuerySchema, request.query, response);
    if (query === undefined) {
      return;
    }
    const page = await askStore(audit.page(query.limit, query.cursor));
    if (page === OVERDUE) {
      sendUnavailable(response);
      return;
    }
    response.json({
      entries: page.entries.filter(({ publisher }) => maySee(response, publisher)).map(auditView),
      next_cursor: page.next === undefined ? null : auditCursor(page.next),
    });
  };
}

function auditView({ atMs, adResponseId, replayId, discardId, ...entry }: AuditEntry): AuditView {
  return {
    at: isoTime(atMs),
    by: entry.by,
    address: entry.address ?? null,
    publisher: entry.publisher ?? null,
    action: entry.action,
    ad_response_id: adResponseId ?? null,
    replay_id: replayId ?? null,
    discard_id: discardId ?? null,
    details: entry.details,
  };
}
