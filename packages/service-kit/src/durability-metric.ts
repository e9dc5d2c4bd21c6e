import { Gauge, type Registry } from "prom-client";
import type { DurabilityGuard } from "./durability-guard.ts";

/** `adrelay_redis_durable`: whether this process takes acknowledgments, as far as Redis goes. */
export function reportDurability(registry: Registry, guard: Pick<DurabilityGuard, "isDurable">): void {
  new Gauge({
    name: "adrelay_redis_durable",
    help: "1 while Redis is there and keeps what it is given; 0: acknowledgments get 503.",
    registers: [registry],
    collect() {
      this.set(guard.isDurable ? 1 : 0);
    },
  });
}
