/** What operators should know of the relay before or while they change dead letters: open circuit breakers, no worker. */
import { type Stats, statsSchema } from "@adrelay/contract";
import type { Session } from "./session.ts";

/** The relay's numbers; undefined if there is no usable answer. They are only for hints, so no failure is told. */
export async function loadStats({ client }: Session): Promise<Stats | undefined> {
  const answer = await client.call({ path: "/stats", schema: statsSchema });
  return answer.kind === "ok" ? answer.value : undefined;
}

/** One line for each open circuit breaker that holds back dead letters of this publisher, or of any. */
export function describeOpenCircuits({ providers }: Stats, publisher: string | undefined): string[] {
  const concerned = providers.filter(
    ({ publishers }) => publisher === undefined || publishers.includes(publisher),
  );
  const isAll = concerned.every(({ circuit }) => circuit === "open");
  return concerned
    .filter(({ circuit }) => circuit === "open")
    .map(({ provider, reason, publishers }) => {
      const those = isAll || publisher !== undefined ? "these" : `those of ${publishers.join(", ")}`;
      return `The circuit breaker of ${provider} is open (${reason ?? "-"}): ${those} will wait.`;
    });
}

/** A worker sends a heartbeat each second. One that stands still for a moment isn't away. */
const SILENCE_TOLD_MS = 8000;

/** Finds that no worker has been seen for some time. */
export class WorkerWatch {
  #noneSinceMs: number | undefined;

  /** For how many seconds no worker has been seen; undefined if one was seen a moment ago. */
  silentSeconds(stats: Stats): number | undefined {
    if (stats.processes === null) {
      return undefined;
    }
    const latestMs = lastSeenMs(stats);
    // A worker that has stopped or died isn't listed.
    this.#noneSinceMs = latestMs === undefined ? (this.#noneSinceMs ?? performance.now()) : undefined;
    const silentMs =
      latestMs === undefined
        ? performance.now() - (this.#noneSinceMs ?? performance.now())
        : Date.parse(stats.at) - latestMs;
    return silentMs >= SILENCE_TOLD_MS ? Math.round(silentMs / 1000) : undefined;
  }
}

/** Whether a worker was seen a moment ago. True also for an operator who may not see processes. */
export function hasWorker(stats: Stats): boolean {
  if (stats.processes === null) {
    return true;
  }
  const latestMs = lastSeenMs(stats);
  return latestMs !== undefined && Date.parse(stats.at) - latestMs < SILENCE_TOLD_MS;
}

function lastSeenMs({ processes }: Stats): number | undefined {
  const seen = (processes ?? [])
    .filter(({ role }) => role === "worker")
    .map(({ seen_at }) => Date.parse(seen_at));
  return seen.length === 0 ? undefined : Math.max(...seen);
}
