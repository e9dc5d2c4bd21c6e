import { Audit, DeadLetters, type Ledger, Listing, Replays } from "@adrelay/ledger";
import type { DeliveryQueue } from "@adrelay/queue";
import type { Router } from "express";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import packageJson from "../package.json" with { type: "json" };
import type { GatewayConfig } from "./config.ts";
import { createAdminRouter } from "./routes/admin.ts";

interface AdminParts {
  readonly redis: Redis;
  readonly ledger: Ledger;
  readonly queue: DeliveryQueue;
  readonly log: Logger;
}

/** Makes the parts that only operators use; undefined where no operator is named. */
export function composeAdmin({ settings, operators }: GatewayConfig, parts: AdminParts): Router | undefined {
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
    version: packageJson.version,
  });
}
