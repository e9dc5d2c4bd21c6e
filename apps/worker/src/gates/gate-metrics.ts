import { CIRCUIT_REASONS } from "@adrelay/core";
import type { GateState } from "@adrelay/ledger";
import { Gauge, type Registry } from "prom-client";

/** The gates as this process saw them last. */
export interface GateMetrics {
  show(provider: string, state: GateState): void;
}

/** provider: the configured accounts, by the name of one of their publishers. reason: outage, auth, throttled. */
export function createGateMetrics(registry: Registry, providers: readonly string[]): GateMetrics {
  const registers = [registry];
  const open = new Gauge({
    name: "adrelay_provider_circuit_open",
    help: "1 while no attempts but probes go to the provider, by why: outage, auth (it refuses our key), throttled.",
    labelNames: ["provider", "reason"],
    registers,
  });
  const waiting = new Gauge({
    name: "adrelay_provider_waiting_acknowledgments",
    help: "Queued acknowledgments that wait until their provider takes attempts again.",
    labelNames: ["provider"],
    registers,
  });
  const show: GateMetrics["show"] = (provider, state) => {
    for (const reason of CIRCUIT_REASONS) {
      open.set({ provider, reason }, state.phase === "open" && state.reason === reason ? 1 : 0);
    }
    waiting.set({ provider }, state.waiting);
  };
  for (const provider of providers) {
    show(provider, { phase: "closed", reason: undefined, sinceMs: 0, nextProbeAtMs: 0, waiting: 0 });
  }
  return { show };
}
