/**
 * The store: everything that the relay keeps in Redis. An accepted acknowledgment and its job are one transaction, and so
 * are the outcome of an attempt and the end of its job.
 *
 * 1. Each transition is one script. It checks the state that it leaves, moves the entry, keeps the indexes and adds to the
 *    counters. So the numbers are exact after a crash, and two workers never count twice.
 * 2. A transition that already happened changes and counts nothing.
 * 3. The clock is Redis' own. Skew between machines moves no deadline.
 * 4. What a user wrote is only in the job's payload, and leaves Redis with it (invariant 6).
 *
 * Not guaranteed: that a rejected call had no effect. A connection can break after Redis has run a script.
 */
import { randomUUID } from "node:crypto";
import type { AdResponseId } from "@adrelay/contract";
import { UNKNOWN_FINDING } from "@adrelay/core";
import type { Redis } from "ioredis";
import { defineScripts } from "./bullmq/define-scripts.ts";
import { DeliveryQueue, type QueueDepths } from "./bullmq/queue.ts";
import type { CircuitRules } from "./circuit/circuit-reports.ts";
import { Circuits } from "./circuit/circuits.ts";
import { BulkDiscards, BulkReplays } from "./dead-letters/bulk-kinds.ts";
import { Audit, DeadLetters } from "./dead-letters/dead-letters.ts";
import { type ListPage, type ListQuestion, loadEntry, loadPage } from "./dead-letters/listing.ts";
import { Outbox } from "./dead-letters/outbox.ts";
import { QueuedDiscards } from "./dead-letters/queued-discards.ts";
import { Deliveries } from "./delivery/deliveries.ts";
import type { LedgerEntry } from "./entry.ts";
import { Erasures } from "./erasure/erasures.ts";
import { GoneProcesses } from "./heartbeat/gone-processes.ts";
import { Heartbeat, type HeartbeatOptions } from "./heartbeat/heartbeat.ts";
import { Acceptor, type AcceptRequest, type AcceptResult } from "./intake/accept.ts";
import { InjectionRecorder } from "./intake/injections.ts";
import { RoomWatch } from "./intake/room.ts";
import { type IntakeRules, type IntakeRulesOf, NO_LIMITS } from "./intake/rules.ts";
import { DueTurns } from "./journal/due-turns.ts";
import { TurnJournal } from "./journal/turn-journal.ts";
import { type FindAd, TurnSettler } from "./journal/turn-settler.ts";
import { TURN_LEASE_MS, type Turns } from "./journal/types.ts";
import { Reconciliation } from "./maintenance/reconcile.ts";
import { Recount } from "./maintenance/recount.ts";
import { Rewrites } from "./maintenance/rewrites.ts";
import { Sweep } from "./maintenance/sweep.ts";
import { LedgerCollector } from "./metrics/ledger-collector.ts";
import type { LedgerMetricsOptions } from "./metrics/ledger-metrics.ts";
import { type LedgerSnapshot, loadSnapshot } from "./metrics/snapshot.ts";
import { Adoptions } from "./publishers/adoption.ts";
import { KeyUses } from "./publishers/key-uses.ts";
import { memberOf, storeKeys } from "./redis/keys.ts";
import { ScriptLibrary, ScriptRunner } from "./redis/scripts.ts";
import type { StoreLog } from "./store-log.ts";

/** What a process gives its store. */
export interface StoreOptions {
  /** Fails fast: callers wait for the answer. */
  readonly redis: Redis;
  /** Waits for Redis as long as necessary. Deliveries and the reports of their attempts need it. */
  readonly waitingRedis?: Redis;
  /** How long the entry of an ad response is kept after its end. */
  readonly recordRetentionMs: number;
  /** The same for a delivered one, and for one without an ad; default: as the others. */
  readonly deliveredRetentionMs?: number;
  /** What intake must know of a publisher; default: unknown ids are accepted, and there are no limits. */
  readonly intakeRules?: IntakeRulesOf;
  /** How long Redis must have answered without a break before a worker settles turns; default: a lease. */
  readonly turnGraceMs?: number;
  /** Finds ads in the texts of turns; default: what is in them is unknown. */
  readonly findAd?: FindAd;
  /** Rules of the circuit breakers; needed by workers only. */
  readonly circuitRules?: CircuitRules;
  /** This process, as operators read it: its host and pid. */
  readonly process?: string;
  readonly log?: StoreLog;
  /** True while the process stops: long rounds and repeated bookings end. */
  readonly isStopping?: () => boolean;
  /** There is one partition now; tests use their own. */
  readonly partition?: string;
}

export interface Store {
  readonly acknowledgments: {
    /** Accepts one acknowledgment, or says why not. A rejection means that its fate is unknown. */
    accept(request: AcceptRequest): Promise<AcceptResult>;
    /** One entry; undefined if the ledger doesn't know it, or has forgotten it. */
    find(id: AdResponseId): Promise<LedgerEntry | undefined>;
    /** One page of the entries in one state, newest first. */
    page(question: ListQuestion): Promise<ListPage>;
  };
  readonly injections: Pick<InjectionRecorder, "record">;
  /** The journal of turns, for the model proxy. */
  readonly turns: Turns;
  /** How full Redis is. A process that accepts acknowledgments asks once a second. */
  readonly room: Pick<RoomWatch, "refresh" | "memory" | "accepts" | "warnings">;
  readonly deliveries: Pick<Deliveries, "start" | "stop" | "setConcurrency" | "isConsuming">;
  readonly deadLetters: Pick<DeadLetters, "replay" | "discard">;
  readonly erasures: Pick<Erasures, "erase" | "eraseSession">;
  readonly adoptions: Pick<Adoptions, "adoptBatch">;
  /** When callers' keys were used last. */
  readonly keyUses: Pick<KeyUses, "note" | "save" | "load">;
  readonly replays: Pick<BulkReplays, "start" | "count" | "cancel" | "find" | "latest">;
  /** Bulk discards of dead letters. Those of queued acknowledgments are found, listed and cancelled here as well. */
  readonly discards: Pick<BulkDiscards, "start" | "count" | "cancel" | "find" | "latest">;
  readonly queuedDiscards: Pick<QueuedDiscards, "start" | "count">;
  readonly audit: Pick<Audit, "page">;
  readonly circuits: Pick<
    Circuits,
    "busy" | "load" | "foreign" | "forgetSilent" | "release" | "bringBack" | "claim" | "report"
  >;
  /** What workers do again and again; each part is safe to run in many workers at the same time. */
  readonly maintenance: {
    /** Moves overdue entries to missed and expired, settles turns that are due, and does the outbox tasks that are due. */
    sweep(deadLetterRetentionMs: number): Promise<void>;
    /** Compares the next batch of queued entries with the queue, and repairs what differs. Recounts what publishers store. */
    reconcile(): Promise<void>;
    /** Brings back jobs whose attempt is overdue by Redis' clock. */
    promoteOverdue(): Promise<void>;
    /** Returns the jobs of processes that are gone to the waiting jobs. */
    returnJobs(): Promise<void>;
    /** Advances all running bulk replays and bulk discards. True if there were any. */
    runBulkChanges(): Promise<boolean>;
  };
  /** Rewrites of Redis' files, so that what has left its memory leaves its disk. */
  readonly rewrites: Pick<Rewrites, "runRound" | "request" | "load">;
  /** The process' heartbeat. One for each process. */
  heartbeat(options: HeartbeatOptions): Heartbeat;
  /** All counts of the ledger. Those of one publisher are from one moment. */
  snapshot(): Promise<LedgerSnapshot>;
  queueDepths(): Promise<QueueDepths>;
  /** What collects the ledger's metrics at each scrape. One for each process. */
  metrics(options: LedgerMetricsOptions): Pick<LedgerCollector, "collect">;
  /** Stops the queue; to be called after the stop of the deliveries. The connections belong to the caller. */
  stop(): Promise<void>;
}

const NO_LOG: StoreLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const OPEN_RULES: IntakeRules = { acceptsUnknown: true, limits: NO_LIMITS };
const DEFAULT_CIRCUIT_RULES: CircuitRules = { probeIntervalMs: 5000, recoveryRatePerSecond: 100 };

/** Opens the store on the caller's connections. */
export function openStore(options: StoreOptions): Store {
  return assembleStore(makeParts(options));
}

/** The store from its parts; tests use the parts as well. */
export function assembleStore(parts: StoreParts): Store {
  const { redis, run, keys, queue, acceptor, circuits, outbox, replays, discards, queuedDiscards } = parts;
  const sweep = new Sweep(parts);
  const reconciliation = new Reconciliation({ run, keys, queue, outbox });
  const recount = new Recount(parts);
  const deliveries = new Deliveries(parts);
  const goneProcesses = new GoneProcesses({ ...parts, returnJobs: queue.returnJobsScript() });
  return {
    acknowledgments: {
      accept: (request) => acceptor.accept(request),
      find: (id) => loadEntry({ redis, keys }, memberOf(id)),
      page: (question) => loadPage({ redis, run, keys }, question),
    },
    injections: new InjectionRecorder(parts),
    turns: new TurnJournal(parts),
    room: parts.room,
    deliveries,
    deadLetters: new DeadLetters(parts),
    erasures: new Erasures(parts),
    adoptions: new Adoptions(parts),
    keyUses: new KeyUses(parts),
    replays,
    discards,
    queuedDiscards,
    audit: new Audit(redis, keys),
    circuits,
    maintenance: {
      sweep: (deadLetterRetentionMs) => sweep.runRound(deadLetterRetentionMs),
      reconcile: async () => {
        await reconciliation.runRound();
        await recount.runRound();
      },
      promoteOverdue: () => reconciliation.promoteOverdue(),
      returnJobs: () => goneProcesses.returnJobs(),
      runBulkChanges: async () => {
        const ran = [];
        for (const changes of [replays, discards, queuedDiscards]) {
          ran.push(await changes.runRound());
        }
        return ran.includes(true);
      },
    },
    rewrites: new Rewrites(parts),
    heartbeat: (heartbeatOptions) =>
      new Heartbeat({ ...parts, ...heartbeatOptions, holdsJobs: () => deliveries.holdsJobs }),
    snapshot: () => loadSnapshot(parts),
    queueDepths: () => queue.depths(),
    metrics: (metricsOptions) => new LedgerCollector(parts, metricsOptions),
    stop: () => queue.stop(),
  };
}

export type StoreParts = ReturnType<typeof makeParts>;

/** What the store is assembled from. */
export function makeParts({
  redis,
  waitingRedis,
  recordRetentionMs,
  deliveredRetentionMs = recordRetentionMs,
  intakeRules = () => OPEN_RULES,
  turnGraceMs = TURN_LEASE_MS,
  findAd = async () => UNKNOWN_FINDING,
  circuitRules = DEFAULT_CIRCUIT_RULES,
  process = "",
  log = NO_LOG,
  isStopping = () => false,
  partition = "0",
}: StoreOptions) {
  const keys = storeKeys(partition);
  const library = new ScriptLibrary();
  for (const connection of [redis, waitingRedis]) {
    if (connection !== undefined) {
      defineScripts(connection, library);
    }
  }
  const scripts = new ScriptRunner(redis, library);
  const { run } = scripts;
  const waitingScripts = waitingRedis === undefined ? undefined : new ScriptRunner(waitingRedis, library);
  const queue = new DeliveryQueue({ redis, queuePrefix: keys.queuePrefix });
  const outbox = new Outbox({ redis, run, keys, queue, log });
  /** Its heartbeat and the locks of its jobs carry it. */
  const processId = randomUUID();
  const shared = {
    processId,
    redis,
    run,
    keys,
    library,
    scripts,
    queue,
    outbox,
    recordRetentionMs,
    deliveredRetentionMs,
    log,
    isStopping,
  };
  const room = new RoomWatch({ redis, run, keys });
  const acceptor = new Acceptor({ ...shared, rulesOf: intakeRules, roomNow: () => room.now });
  const settler = new TurnSettler({ ...shared, rulesOf: intakeRules, acceptor, findAd });
  return {
    ...shared,
    room,
    settler,
    dueTurns: new DueTurns({ settler, log, isStopping }),
    turnGraceMs,
    waiting: waitingScripts && waitingRedis && { redis: waitingRedis, scripts: waitingScripts },
    acceptor,
    circuits: new Circuits({
      redis,
      run,
      runPatiently: (waitingScripts ?? scripts).run,
      keys,
      queue,
      rules: circuitRules,
      process,
    }),
    replays: new BulkReplays(shared),
    discards: new BulkDiscards(shared),
    queuedDiscards: new QueuedDiscards(shared),
  };
}
