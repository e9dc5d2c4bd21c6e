import { Audit, DeadLetters, type Ledger, Listing, type Pulse, Replays } from "@adrelay/ledger";
import type { ProviderClient } from "@adrelay/provider";
import type { DeliveryQueue } from "@adrelay/queue";
import { ADRELAY_VERSION, type DurabilityGuard } from "@adrelay/service-kit";
import type { Router } from "express";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { GatewayConfig } from "./config.ts";
import { createAdminRouter } from "./routes/admin.ts";
import { makeDoctor } from "./routes/doctor/doctor.ts";
import { makeRelayViews } from "./routes/relay-views.ts";

interface AdminParts {
  readonly redis: Redis;
  readonly guard: DurabilityGuard;
  readonly ledger: Ledger;
  readonly queue: DeliveryQueue;
  readonly provider: ProviderClient;
  readonly pulse: Pulse;
  readonly log: Logger;
}

/** Makes the parts that only operators use; undefined where no operator is named. */
export function composeAdmin(
  { settings, operators, publishers }: GatewayConfig,
  parts: AdminParts,
): Router | undefined {
  if (operators.length === 0) {
    return undefined;
  }
  const { redis, ledger, queue, log } = parts;
  const options = { redis, recordRetentionMs: settings.RECORD_RETENTION };
  return createAdminRouter(operators, {
    ledger,
    queue,
    log,
    listing: new Listing(options),
    deadLetters: new DeadLetters(options),
    replays: new Replays(options),
    audit: new Audit(options),
    doctor: makeDoctor({ ...parts, publishers }),
    ...makeRelayViews({ ...parts, publishers }),
    version: ADRELAY_VERSION,
  });
}
