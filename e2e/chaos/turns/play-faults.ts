/** Carries out the faults of a run with turns, and notes when each one ran. */
import { pause } from "@adrelay/testkit";
import {
  describeTurnFault,
  type PlannedTurnFault,
  type TurnFault,
  type TurnFaultSpan,
  victimOf,
} from "./faults.ts";
import type { TurnsStack } from "./stack.ts";
import type { TrafficClock } from "./traffic-clock.ts";

export interface Playing {
  readonly stack: TurnsStack;
  readonly clock: TrafficClock;
  readonly say: (line: string) => void;
}

/** Resolves once everything works again. A fault waits until an earlier one of the same victim is over. */
export async function playFaults(
  plan: readonly PlannedTurnFault[],
  { stack, clock, say }: Playing,
): Promise<readonly TurnFaultSpan[]> {
  const spans: TurnFaultSpan[] = [];
  const busy = new Map<string, Promise<void>>();
  for (const planned of plan) {
    const { fault, durationMs, atMs } = planned;
    await clock.until(atMs);
    const playOne = async () => {
      say(`${(clock.nowMs() / 1000).toFixed(1).padStart(6)} s ${describeTurnFault(planned)}`);
      const span = { fault, fromMs: Date.now(), untilMs: Number.POSITIVE_INFINITY };
      spans.push(span);
      await applyTurnFault({ stack, clock }, fault, durationMs);
      span.untilMs = Date.now();
    };
    const done = (busy.get(victimOf(fault)) ?? Promise.resolve()).then(playOne);
    // The `Promise.all` below reports the error; until then it must not count as unhandled.
    done.catch(() => {});
    busy.set(victimOf(fault), done);
  }
  await Promise.all(busy.values());
  return spans;
}

async function applyTurnFault(
  { stack, clock }: Omit<Playing, "say">,
  fault: TurnFault,
  durationMs: number,
): Promise<void> {
  const { redis, apps } = stack;
  switch (fault.kind) {
    case "kill":
      await apps.get(fault.app)?.crash();
      await pause(durationMs);
      return clock.during(async () => apps.get(fault.app)?.start());
    case "freeze":
      apps.get(fault.app)?.freeze();
      await pause(durationMs);
      return apps.get(fault.app)?.thaw();
    case "restart":
      await apps.get(fault.app)?.stop();
      return clock.during(async () => apps.get(fault.app)?.start());
    case "redis_kill":
      await redis.crash();
      await pause(durationMs);
      return clock.during(() => redis.restart());
    case "redis_freeze":
      await redis.freeze();
      await pause(durationMs);
      return redis.thaw();
    case "link_cut":
      return stack.link(fault.app, fault.end).cut();
    default:
      fault satisfies never;
  }
}
