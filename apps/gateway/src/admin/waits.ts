/** What queued acknowledgments wait for besides their next attempt: their publisher, or their provider. */
import type { AcknowledgmentView } from "@adrelay/contract";
import { listAccounts, type Publisher } from "@adrelay/provider";
import type { CircuitState, LedgerEntry, Store } from "@adrelay/store";

export interface WaitsDeps {
  readonly store: { readonly circuits: Pick<Store["circuits"], "load"> };
  /** The configured ones. */
  readonly publishers: readonly Publisher[];
}

export type Wait = Pick<AcknowledgmentView, "waits_for" | "circuit_reason">;

/** Asks once for each account of these entries, then says what each entry waits for. */
export type LoadWaits = (entries: readonly LedgerEntry[]) => Promise<(entry: LedgerEntry) => Wait>;

export function makeLoadWaits({ store, publishers }: WaitsDeps): LoadWaits {
  const accounts = listAccounts(publishers);
  const byPublisher = new Map(
    accounts.flatMap((account) => account.publishers.map((id) => [id, account] as const)),
  );
  return async (entries) => {
    const queued = entries.filter(({ state }) => state === "queued");
    const asked = new Set(queued.flatMap(({ publisher }) => byPublisher.get(publisher) ?? []));
    const states = new Map(
      await Promise.all(
        [...asked].map(async (account) => [account.id, await store.circuits.load(account)] as const),
      ),
    );
    return ({ state, publisher }) => {
      const account = byPublisher.get(publisher);
      return state === "queued" ? waitOf(account && states.get(account.id)) : NOTHING;
    };
  };
}

const NOTHING: Wait = { waits_for: null, circuit_reason: null };

/** `circuit`: undefined if the publisher is gone, and has no account. */
function waitOf(circuit: CircuitState | undefined): Wait {
  if (circuit === undefined) {
    return { waits_for: "publisher", circuit_reason: null };
  }
  return circuit.phase === "open"
    ? { waits_for: "provider", circuit_reason: circuit.reason ?? null }
    : NOTHING;
}
