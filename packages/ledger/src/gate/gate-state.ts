import type { PublisherId } from "@adrelay/contract";
import { CIRCUIT_PHASES, CIRCUIT_REASONS, type CircuitPhase, type CircuitReason } from "@adrelay/core";
import type { Redis } from "ioredis";
import { z } from "zod";
import { fieldsOf } from "../entry.ts";
import { gateKeys } from "../keys.ts";

/** A provider as its publishers share it. */
export interface GateAccount {
  /** One of its publishers' ids stands for it. */
  readonly name: string;
  readonly publishers: readonly PublisherId[];
}

export interface GateState {
  readonly phase: CircuitPhase;
  /** Why it opened last; undefined if it never did. */
  readonly reason: CircuitReason | undefined;
  /** Since when it is in this phase; 0 if it never was in another. */
  readonly sinceMs: number;
  /** Meaningful while it is open. */
  readonly nextProbeAtMs: number;
  /** Queued acknowledgments that wait for the provider. */
  readonly waiting: number;
}

export const phaseSchema = z.enum(CIRCUIT_PHASES);
export const reasonSchema = z
  .enum(CIRCUIT_REASONS)
  .or(z.literal("").transform(() => undefined))
  .optional();
const storedSchema = z.object({
  phase: phaseSchema.optional(),
  reason: reasonSchema,
  since: z.coerce.number().default(0),
  next: z.coerce.number().default(0),
});

/** Loads how an account stands; changes nothing. */
export async function loadGateState(
  redis: Redis,
  { name, publishers }: GateAccount,
  partition = "0",
): Promise<GateState> {
  const keys = gateKeys(partition);
  const [gate = ""] = keys.forGate(name);
  const [fields, ...sizes] = await Promise.all([
    redis.call("HGETALL", gate).then(fieldsOf),
    ...publishers.map((publisher) => redis.zcard(keys.parked(publisher))),
  ]);
  const { phase = "closed", reason, since, next } = storedSchema.parse(fields);
  const waiting = sizes.reduce((sum, size) => sum + size, 0);
  return { phase, reason, sinceMs: since, nextProbeAtMs: next, waiting };
}
