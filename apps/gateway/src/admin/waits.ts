/** What queued acknowledgments wait for besides their next attempt: their publisher, or their provider. */
import type { AcknowledgmentView } from "@adrelay/contract";
import type { PublisherDirectory } from "@adrelay/provider";
import type { CircuitState, LedgerEntry, Store } from "@adrelay/store";

export interface WaitsDeps {
  readonly store: { readonly circuits: Pick<Store["circuits"], "load"> };
  readonly publishers: PublisherDirectory;
}

export type Wait = Pick<AcknowledgmentView, "waits_for" | "circuit_reason">;

/** Asks once for each account of these entries, then says what each entry waits for. */
export type LoadWaits = (entries: readonly LedgerEntry[]) => Promise<(entry: LedgerEntry) => Wait>;

export function makeLoadWaits({ store, publishers }: WaitsDeps): LoadWaits {
  return async (entries) => {
    const queued = entries.filter(({ state }) => state === "queued");
    const byPublisher = new Map(
      queued.map(({ publisher }) => [publisher, publishers.accountOf(publisher)] as const),
    );
    const asked = new Set([...byPublisher.values()].flatMap((account) => account ?? []));
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
