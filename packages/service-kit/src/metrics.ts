import { collectDefaultMetrics, Registry } from "prom-client";

/** A registry of one process, with Node's default metrics in it. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}
