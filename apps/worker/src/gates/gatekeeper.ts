/**
 * Decides for each attempt whether it may go out now, and learns from what came of it.
 *
 * The circuits stand in Redis, shared by all workers; this process keeps a view of them that is at most one
 * look old, so that an attempt at a healthy provider costs no further question to Redis.
 *
 * - A slot comes first: what is granted goes out at once.
 * - An attempt under way when its circuit opens is what it is: booked and counted as it ends.
 */
import type { PublisherId } from "@adrelay/contract";
import type { CircuitPhase, ProviderHealth } from "@adrelay/core";
import type { GateMember, GateState, Parking, ProviderGates } from "@adrelay/ledger";
import { FailureDetector, type ProviderGroup } from "@adrelay/provider";
import type { Logger } from "pino";
import { AccountSlots, type FreeSlot } from "./account-slots.ts";
import type { GateMetrics } from "./gate-metrics.ts";

export interface GatekeeperOptions {
  readonly gates: ProviderGates;
  readonly groups: readonly ProviderGroup[];
  /** Most attempts at one provider account at once. */
  readonly attemptsMax: number;
  readonly metrics: GateMetrics;
  readonly log: Logger;
}

export type Admission =
  /** `isProbe`: it is made for the provider's sake, so its failure isn't the acknowledgment's. */
  | { readonly kind: "granted"; readonly isProbe: boolean; readonly free: FreeSlot }
  | { readonly kind: "wait"; readonly why: "circuit" | "slots" };

interface Account {
  readonly group: ProviderGroup;
  readonly slots: AccountSlots;
  readonly failureDetector: FailureDetector;
  phase: CircuitPhase;
}

export class Gatekeeper {
  readonly #options: GatekeeperOptions;
  readonly #accounts: readonly Account[];
  readonly #byPublisher = new Map<PublisherId, Account>();

  constructor(options: GatekeeperOptions) {
    this.#options = options;
    this.#accounts = options.groups.map((group) => ({
      group,
      slots: new AccountSlots(options.attemptsMax),
      failureDetector: new FailureDetector(),
      phase: "closed",
    }));
    for (const account of this.#accounts) {
      for (const publisher of account.group.publishers) {
        this.#byPublisher.set(publisher, account);
      }
    }
  }

  /** The provider account of a publisher; undefined for one that is not configured (any more). */
  groupOf(publisher: PublisherId): ProviderGroup | undefined {
    return this.#byPublisher.get(publisher)?.group;
  }

  /** Whether this attempt may go out now. */
  async admit(member: GateMember): Promise<Admission> {
    const account = this.#accountOf(member.publisher);
    const free = await account.slots.take();
    if (free === undefined) {
      return { kind: "wait", why: "slots" };
    }
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

  /** Puts an acknowledgment among those that wait for their provider. */
  async park({ member, place, notify }: Omit<Parking, "account">): Promise<void> {
    const account = this.#accountOf(member.publisher).group.name;
    await this.#options.gates.park({ account, member, place, notify });
  }

  /** Learns what an attempt says of its provider; answers the phase of the circuit after that. */
  async learn(publisher: PublisherId, health: ProviderHealth, isProbe: boolean): Promise<CircuitPhase> {
    const account = this.#accountOf(publisher);
    if (isProbe) {
      await this.#endProbe(account, health);
    } else if (account.phase !== "open") {
      const trip = account.failureDetector.observe(health);
      if (trip !== undefined) {
        await this.#report(account, { kind: "trip", ...trip });
      }
    }
    return account.phase;
  }

  /** How many attempts at an account could begin here at once. */
  roomOf(group: ProviderGroup): number {
    return this.#accounts.find((account) => account.group === group)?.slots.room ?? 0;
  }

  /** Takes note of how an account's gate stands. */
  see(group: ProviderGroup, state: GateState): void {
    const account = this.#accounts.find((one) => one.group === group);
    if (account !== undefined) {
      this.#enter(account, state.phase);
      this.#options.metrics.show(group.name, state);
    }
  }

  /** What a person should know of the providers, for `/readyz`: this process can do its work all the same. */
  warnings(): Record<string, string> {
    const open = this.#accounts.filter(({ phase }) => phase === "open");
    return Object.fromEntries(
      open.map(({ group }) => [`provider_${group.name}`, "its circuit is open: nothing but probes goes out"]),
    );
  }

  /** Makes probes due: this process may have better settings than the one that opened the circuit. */
  async retryNow(): Promise<void> {
    for (const account of this.#accounts) {
      await this.#report(account, { kind: "probe_now" });
    }
  }

  async #claim(account: Account, member: GateMember, free: FreeSlot): Promise<Admission> {
    const { code, phase } = await this.#options.gates.claim(account.group.name, member);
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

  #endProbe(account: Account, health: ProviderHealth): Promise<void> {
    switch (health.kind) {
      case "healthy":
        return this.#report(account, { kind: "probe_succeeded" });
      case "throttled":
        return this.#report(account, { kind: "probe_failed", reason: "throttled", holdMs: health.holdMs });
      case "failing":
        return this.#report(account, { kind: "probe_failed", reason: "outage", holdMs: health.holdMs });
      case "refusing":
        return this.#report(account, { kind: "probe_failed", reason: "auth", holdMs: 0 });
      default:
        return health satisfies never;
    }
  }

  async #report(account: Account, event: Parameters<ProviderGates["report"]>[1]): Promise<void> {
    const { before, after } = await this.#options.gates.report(account.group.name, event);
    this.#enter(account, after);
    if (before !== after) {
      const reason = "reason" in event ? event.reason : undefined;
      this.#tell(after, { provider: account.group.name, reason });
    }
  }

  #tell(
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

  #enter(account: Account, phase: CircuitPhase): void {
    if (account.phase !== phase) {
      account.phase = phase;
      account.failureDetector.reset();
    }
  }

  #accountOf(publisher: PublisherId): Account {
    const account = this.#byPublisher.get(publisher);
    if (account === undefined) {
      throw new TypeError(`publisher ${publisher} has no provider here`);
    }
    return account;
  }
}
