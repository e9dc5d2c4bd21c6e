/** Makes the half that decides on ads and keeps turns. */
import {
  Admission,
  type CountOverload,
  createInjectionMetrics,
  createQuotaMetrics,
  defaultQuotas,
  type IntakeAdapters,
  makeStartInjection,
  PendingWork,
  type PublisherSeries,
  type RelayBase,
  SessionHashes,
} from "@adrelay/relay-kit";
import type { FindAd } from "@adrelay/store";
import type { ProxyConfig } from "./config.ts";
import type { PrepareCall } from "./http/call.ts";
import { Journal } from "./turns/journal.ts";
import { makePrepareCall } from "./turns/prepare-call.ts";
import { createTurnMetrics } from "./turns/turn-metrics.ts";

/** The share of a stop's time after which ad calls that still run are given up. */
const DRAIN_SHARE = 0.4;

export interface TurnParts extends IntakeAdapters {
  readonly series: PublisherSeries;
  /** Whether Redis takes bookings now. */
  canBook(): boolean;
  readonly findAd: FindAd;
  readonly onOverload: CountOverload;
}

/** The journal stops after the listener, which is registered later: by then each step has ended. */
export async function startTurns(base: RelayBase<ProxyConfig>, parts: TurnParts): Promise<PrepareCall> {
  const { config, log, lifecycle, registry } = base;
  const { settings } = config;
  const pending = new PendingWork((err) => log.error({ event: "background_work_failed", err }));
  lifecycle.onStop("late answers", () => pending.stop());
  const journal = new Journal({
    turns: parts.store.turns,
    findAd: parts.findAd,
    metrics: createTurnMetrics(registry),
    log,
    random: Math.random,
    maxBytes: settings.PROXY_JOURNAL_BYTES,
    textLimitBytes: settings.PROXY_TEXT_LIMIT_BYTES,
  });
  await lifecycle.start("journal", journal);
  return makePrepareCall({
    turns: parts.store.turns,
    startInjection: openInjections(base, { ...parts, pending }),
    admission: openAdmission(base, parts),
    ackDeadlineMs: settings.ACK_DEADLINE_MS,
    pending,
    journal,
    sessionHashes: new SessionHashes(settings.SESSION_HASH_KEYS ?? []),
    canBook: () => parts.canBook(),
    canOpen: () => parts.store.room.accepts !== "none",
    log,
    injectionTimeoutMs: settings.PROXY_INJECTION_TIMEOUT_MS,
    turnWaitMs: settings.PROXY_TURN_WAIT_MS,
  });
}

function openInjections(
  { config, log, lifecycle, registry, tracing }: RelayBase<ProxyConfig>,
  { store, provider, series, pending }: TurnParts & { readonly pending: PendingWork },
) {
  const { settings, publishers } = config;
  const drain = new AbortController();
  lifecycle.onStop("ad calls", () => {
    setTimeout(() => drain.abort(), settings.SHUTDOWN_TIMEOUT_MS * DRAIN_SHARE).unref();
  });
  return makeStartInjection({
    injections: store.injections,
    provider,
    metrics: createInjectionMetrics(registry, {
      series,
      publishers,
      providersMax: settings.METRICS_PUBLISHERS_MAX,
    }),
    log,
    lifecycle,
    tracing,
    pending,
    drainSignal: drain.signal,
    ackDeadlineMs: settings.ACK_DEADLINE_MS,
  });
}

/** The admission of ad calls. That of model calls is in ProxyRoom. */
function openAdmission(
  { config: { settings }, registry }: RelayBase<ProxyConfig>,
  { series, onOverload }: TurnParts,
): Admission {
  const { countOverQuota } = createQuotaMetrics(registry, series);
  return new Admission({
    quotas: defaultQuotas(settings),
    callsMax: settings.PROXY_CALLS_IN_FLIGHT,
    bytesMax: settings.PROXY_BYTES_IN_FLIGHT,
    onRefused: ({ id }, refusal) =>
      refusal.kind === "over_quota" ? countOverQuota(id, refusal.quota) : onOverload(refusal.limit),
  });
}
