/** What earlier faults leave behind: until when the workers' circuit breakers wait before their next probe. */
import { openStore } from "@adrelay/store";
import { ACCOUNTS, type Account, deliveringWorkers, type Fault, type Pauses } from "./fault.ts";
import type { ChaosStack } from "./stack.ts";

/**
 * Each worker has its own address of the provider, so it has its own circuit breakers. An account goes on as soon as one
 * of the workers that deliver during the fault may call it.
 */
export async function loadPauses({ admin, circuits }: ChaosStack, fault: Fault): Promise<Pauses> {
  const store = openStore({ redis: admin, recordRetentionMs: 1 });
  const pauseOf = async (account: Account) => {
    const ofWorkers = deliveringWorkers(fault).flatMap((app) => circuits.get(app) ?? []);
    const states = await Promise.all(
      ofWorkers.filter(({ name }) => name === account).map((circuit) => store.circuits.load(circuit)),
    );
    return Math.min(...states.map(({ phase, nextProbeAtMs }) => (phase === "open" ? nextProbeAtMs : 0)));
  };
  const [acme, globe] = await Promise.all(ACCOUNTS.map(pauseOf));
  return { acme: acme ?? 0, globe: globe ?? 0 };
}
