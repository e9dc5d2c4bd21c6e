/**
 * Decides for each attempt whether it may be made now, and learns from its outcome.
 *
 * The circuit breakers are in Redis, shared by all workers. This process keeps a copy of their phases that is at most one
 * release old, so that an attempt at a healthy provider asks Redis nothing more.
 *
 * 1. Room for the body and a slot come first, so that a granted attempt begins immediately.
 * 2. An attempt that is under way when its breaker opens is booked and counted like any other.
 */
import type { PublisherId } from "@adrelay/contract";
import type { CircuitPhase, ProviderHealth } from "@adrelay/core";
import type { SharedAccount } from "@adrelay/provider";
import type { CircuitMember, CircuitReport, CircuitRoom, Store } from "@adrelay/store";
import type { Logger } from "pino";
import type { CircuitMetrics } from "./circuit-metrics.ts";
import { ConcurrencyLimiter, type FreeSlot } from "./concurrency-limiter.ts";
import { type Attempted, FailureDetector } from "./failure-detector.ts";
import type { PayloadBudget } from "./payload-budget.ts";

export interface CircuitBreakersOptions {
  readonly circuits: Store["circuits"];
  /** The provider accounts. */
  readonly accounts: readonly SharedAccount[];
  /** Most attempts at one provider account at the same time. */
  readonly attemptsMax: number;
  /** For the large bodies of all accounts. */
  readonly payloads: PayloadBudget;
  readonly metrics: Pick<CircuitMetrics, "show" | "useProviders">;
  readonly log: Logger;
}

export type Admission =
  /** `isProbe`: the attempt is made to learn about the provider, so its failure doesn't count for the acknowledgment. */
  | { readonly kind: "granted"; readonly isProbe: boolean; readonly free: FreeSlot }
  | { readonly kind: "wait"; readonly why: "circuit" | "slots" | "bytes" };

/** A provider account with what this process keeps for it. */
export interface BreakerAccount {
  shared: SharedAccount;
  readonly limiter: ConcurrencyLimiter;
  readonly detector: FailureDetector;
  phase: CircuitPhase;
  /** No publisher has it any more. Attempts that began with it still end with it. */
  isRetired: boolean;
}

/** One in this many releases covers all accounts: one every few seconds. */
const RELEASES_PER_FULL_ONE = 50;

export class CircuitBreakers {
  readonly #options: CircuitBreakersOptions;
  #accounts: readonly BreakerAccount[] = [];
  #byPublisher: ReadonlyMap<PublisherId, BreakerAccount> = new Map();
  #ids: ReadonlySet<string> = new Set();
  #busyBefore: ReadonlySet<string>;
  #releases = 0;

  constructor(options: CircuitBreakersOptions) {
    this.#options = options;
    this.#useAccounts(options.accounts);
    this.#busyBefore = this.#ids;
  }

  /**
   * Takes these accounts in place of the present ones. An account that is in both keeps its slots and what was learned.
   * Never rejects.
   */
  async replaceAccounts(accounts: readonly SharedAccount[]): Promise<void> {
    const before = this.#ids;
    this.#useAccounts(accounts);
    // Its breaker may be open because another process had a key that was not yet accepted.
    const added = this.#accounts.filter(({ shared }) => !before.has(shared.id));
    await this.#makeProbesDue(added).catch((err: unknown) =>
      this.#options.log.warn({ event: "release_failed", err }),
    );
  }

  /** The provider account of a publisher; undefined if the publisher isn't configured any more. */
  accountOf(publisher: PublisherId): BreakerAccount | undefined {
    return this.#byPublisher.get(publisher);
  }

  /** Whether this attempt may be made now. `bytes`: of the body that it will load. */
  async admit(account: BreakerAccount, member: CircuitMember, bytes: number): Promise<Admission> {
    const release = this.#options.payloads.take(member.publisher, bytes);
    if (release === undefined) {
      return { kind: "wait", why: "bytes" };
    }
    const freeSlot = await account.limiter.acquire(member.publisher);
    if (freeSlot === undefined) {
      release();
      return { kind: "wait", why: "slots" };
    }
    const free: FreeSlot = (result) => {
      release();
      freeSlot(result);
    };
    if (account.phase === "closed") {
      return { kind: "granted", isProbe: false, free };
    }
    const admission = await this.#claim(account, member, free).catch((error: unknown) => {
      free();
      throw error;
    });
    if (admission.kind === "wait") {
      free();
    }
    return admission;
  }

  /** Learns what an attempt says about its provider; resolves with the phase of the breaker after that. */
  async learn(
    account: BreakerAccount,
    attempted: Attempted,
    { health, isProbe }: { readonly health: ProviderHealth; readonly isProbe: boolean },
  ): Promise<CircuitPhase> {
    if (account.isRetired) {
      return "closed";
    }
    if (isProbe) {
      await this.#report(account, reportOfProbe(attempted.publisher, health));
    } else if (account.phase !== "open") {
      const trip = account.detector.observe(attempted, health);
      if (trip !== undefined) {
        // Before Redis knows it, so that this process makes no further attempts meanwhile. The next release corrects it.
        this.#enter(account, "open");
        await this.#report(account, { kind: "trip", ...trip });
      }
    }
    return account.phase;
  }

  /**
   * Releases parked acknowledgments that may go out now. Accounts that were busy at the last release are asked about once
   * more, so that this process learns that they aren't busy any more. If an account is busy that this process doesn't have,
   * a worker with another URL or key parks acknowledgments of the same publishers: then all accounts are asked about. So are
   * they at the first release, and every few seconds.
   */
  async release(): Promise<void> {
    const { circuits, metrics } = this.#options;
    const busy = await circuits.busy();
    this.#releases += 1;
    const hasForeign = [...busy].some((id) => !this.#ids.has(id));
    const isTurn = this.#releases % RELEASES_PER_FULL_ONE === 0;
    if (hasForeign && isTurn) {
      await circuits.forgetSilent(this.#ids);
    }
    const isFull = hasForeign || isTurn;
    for (const account of this.#accounts) {
      const { shared, limiter } = account;
      if (!account.isRetired && (isFull || busy.has(shared.id) || this.#busyBefore.has(shared.id))) {
        const release = await circuits.release(shared, this.#roomOf(limiter));
        this.#enter(account, release.phase);
        if (release.hasClosed) {
          this.#logMove("closed", { provider: shared.name, reason: undefined });
        }
        // Accounts may have been replaced meanwhile: then its series has ended, or has another name.
        if (!account.isRetired) {
          metrics.show(account.shared.name, { ...release, slots: limiter.slots });
        }
        await circuits.bringBack(shared, release);
      }
    }
    this.#busyBefore = busy;
  }

  /** Makes probes due, then releases: this process may have better settings than the one that opened a breaker. */
  async retryNow(): Promise<void> {
    await this.#makeProbesDue(this.#accounts);
    await this.release();
  }

  async #makeProbesDue(accounts: readonly BreakerAccount[]): Promise<void> {
    for (const account of accounts) {
      await this.#report(account, { kind: "probe_now" });
    }
  }

  #useAccounts(accounts: readonly SharedAccount[]): void {
    const known = new Map(this.#accounts.map((account) => [account.shared.id, account]));
    this.#accounts = accounts.map((shared) => {
      const account = known.get(shared.id) ?? this.#makeAccount(shared);
      known.delete(shared.id);
      account.shared = shared;
      account.limiter.publishers = shared.publishers.length;
      account.detector.publishers = shared.publishers.length;
      return account;
    });
    for (const account of known.values()) {
      account.isRetired = true;
    }
    this.#byPublisher = new Map(
      this.#accounts.flatMap((account) => account.shared.publishers.map((id) => [id, account] as const)),
    );
    this.#ids = new Set(accounts.map(({ id }) => id));
    this.#options.metrics.useProviders(accounts.map(({ name }) => name));
  }

  #makeAccount(shared: SharedAccount): BreakerAccount {
    const publishers = shared.publishers.length;
    return {
      shared,
      limiter: new ConcurrencyLimiter({ limit: this.#options.attemptsMax, publishers }),
      detector: new FailureDetector(publishers),
      phase: "closed",
      isRetired: false,
    };
  }

  /** What a person should know about the providers, for `/readyz`. This process can still do its work. */
  warnings(): Record<string, string> {
    const open = this.#accounts.filter(({ phase }) => phase === "open");
    return Object.fromEntries(
      open.map(({ shared }) => [
        `provider_${shared.name}`,
        "its circuit breaker is open: only probes are made",
      ]),
    );
  }

  #roomOf({ room }: ConcurrencyLimiter): CircuitRoom {
    const { payloads } = this.#options;
    return {
      total: room.total,
      of: (publisher) => Math.min(room.of(publisher), payloads.roomOf(publisher)),
    };
  }

  async #claim(account: BreakerAccount, member: CircuitMember, free: FreeSlot): Promise<Admission> {
    const { code, phase } = await this.#options.circuits.claim(account.shared, member);
    this.#enter(account, phase);
    switch (code) {
      case "closed":
      case "granted":
        return { kind: "granted", isProbe: false, free };
      case "probe":
        return { kind: "granted", isProbe: true, free };
      case "not_now":
        return { kind: "wait", why: "circuit" };
      default:
        return code satisfies never;
    }
  }

  async #report(account: BreakerAccount, report: CircuitReport): Promise<void> {
    const { before, after } = await this.#options.circuits.report(account.shared, report);
    this.#enter(account, after);
    if (before !== after) {
      const reason = report.kind === "trip" ? report.reason : undefined;
      this.#logMove(after, { provider: account.shared.name, reason });
    }
  }

  #logMove(
    phase: CircuitPhase,
    fields: { readonly provider: string; readonly reason: string | undefined },
  ): void {
    const { log } = this.#options;
    switch (phase) {
      case "open":
        log.error({ event: "circuit_open", ...fields });
        return;
      case "recovering":
        log.info({ event: "circuit_recovering", ...fields });
        return;
      case "closed":
        log.info({ event: "circuit_closed", ...fields });
        return;
      default:
        phase satisfies never;
    }
  }

  #enter(account: BreakerAccount, phase: CircuitPhase): void {
    if (account.phase !== phase) {
      account.phase = phase;
      account.detector.reset();
    }
  }
}

function reportOfProbe(publisher: PublisherId, health: ProviderHealth): CircuitReport {
  switch (health.kind) {
    case "healthy":
      return { kind: "probe_succeeded" };
    case "throttled":
      return { kind: "probe_failed", reason: "throttled", holdMs: health.holdMs, publisher };
    case "failing":
      return { kind: "probe_failed", reason: "outage", holdMs: health.holdMs, publisher };
    case "refusing":
      return { kind: "probe_failed", reason: "auth", holdMs: 0, publisher };
    case "blocking":
      // It may be about this acknowledgment only. The next probe is another one, and comes after one interval.
      return { kind: "probe_failed", reason: undefined, holdMs: 0, publisher: undefined };
    default:
      return health satisfies never;
  }
}
