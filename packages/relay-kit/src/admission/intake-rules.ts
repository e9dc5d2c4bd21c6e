/** What intake must know of each publisher: its quotas of memory, and whether its unknown ids are accepted. */
import { limitInBytes, type Quotas, quotasOf, type UnknownAck } from "@adrelay/core";
import type { Publisher } from "@adrelay/provider";
import { type IntakeRules, NO_LIMITS, type RoomView, type StoredLimits } from "@adrelay/store";

export interface IntakeDefaults {
  readonly unknownAck: UnknownAck;
  readonly quotas: Quotas;
}

/** The limits in bytes of a publisher's quotas of memory. A share is one of Redis' memory. */
function storedLimitsOf(quotas: Quotas, memory: Pick<RoomView, "limitBytes"> | undefined): StoredLimits {
  const memoryBytes = memory === undefined || memory.limitBytes === 0 ? undefined : memory.limitBytes;
  return {
    queued_bytes: limitInBytes(quotas.queuedBytes, memoryBytes),
    dead_bytes: limitInBytes(quotas.deadBytes, memoryBytes),
    unknown_bytes: limitInBytes(quotas.unknownBytes, memoryBytes),
  };
}

/** The rules of one publisher, as they are now. */
export function intakeRulesOf(
  publisher: Publisher | undefined,
  defaults: IntakeDefaults,
  memory: Pick<RoomView, "limitBytes"> | undefined,
): IntakeRules {
  if (publisher === undefined) {
    return { acceptsUnknown: defaults.unknownAck === "accept", limits: NO_LIMITS };
  }
  return {
    acceptsUnknown: (publisher.unknownAck ?? defaults.unknownAck) === "accept",
    limits: storedLimitsOf(quotasOf(publisher, defaults.quotas), memory),
    emptyAnswers: publisher.emptyAnswers,
  };
}
