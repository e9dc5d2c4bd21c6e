/** A publisher whose calls show something in every panel: most of them are right, some are wrong. */
import { pause, type RelayCaller, relayCaller, unknownId } from "@adrelay/testkit";
import { runTurns } from "./turns.ts";

export interface TrafficOptions {
  readonly gatewayUrl: string;
  readonly apiKey: string;
  /** The proxy, with a demo model behind it. */
  readonly proxyUrl: string;
  /** The gateway's ACK_DEADLINE_MS, after which an ad is missed. */
  readonly deadlineMs: number;
  /** Ends the traffic. */
  readonly signal: AbortSignal;
}

/** Short limits, so that a minute shows what otherwise takes days. */
export const QUICK_SETTINGS = {
  ACK_DEADLINE_MS: "1500",
  ACK_WAIT_MS: "300",
  INJECTION_TIMEOUT_MS: "500",
  DELIVERY_TIMEOUT_MS: "1000",
  RETRY_SCHEDULE: "200ms,500ms,1s",
  SWEEP_INTERVAL_MS: "200",
  BREAKER_PROBE_INTERVAL_MS: "200",
  RECOVERY_RATE_PER_SECOND: "1000",
  SHUTDOWN_TIMEOUT_MS: "3000",
} as const;

const LANES = 4;
const PAUSE_MS = 120;
/** How long after the deadline a late acknowledgment is sent: the sweep has run by then. */
const LATE_BY_MS = 700;
/** After this many ads a lane begins again with the first case of `treat`. */
const ROUND = 12;

/** Runs until the signal fires. Answers are not checked, because faults run meanwhile. */
export async function runTraffic(options: TrafficOptions): Promise<void> {
  const caller = relayCaller(options.gatewayUrl, options.apiKey);
  const stranger = relayCaller(options.gatewayUrl, "key-of-nobody");
  const late: Promise<unknown>[] = [];
  const lanes = Array.from({ length: LANES }, async (_, lane) => {
    for (let at = lane; !options.signal.aborted; at += 1) {
      const { body } = await caller.inject();
      if (body["status"] === "ok") {
        await treat(at % ROUND, String(body["ad_response_id"]), { options, caller, stranger, late });
      }
      await pause(PAUSE_MS);
    }
  });
  await Promise.all([...lanes, runTurns(options)]);
  await Promise.all(late);
}

interface Callers {
  readonly options: TrafficOptions;
  readonly caller: RelayCaller;
  readonly stranger: RelayCaller;
  readonly late: Promise<unknown>[];
}

const TEXT = "For a first marathon I'd look at the Velmora Drift (sponsored).";

async function treat(turn: number, id: string, { options, caller, stranger, late }: Callers): Promise<void> {
  switch (turn) {
    case 0:
    case 1:
      // Never acknowledged.
      return;
    case 2:
      late.push(pause(options.deadlineMs + LATE_BY_MS).then(() => caller.acknowledge(id, TEXT)));
      return;
    case 3:
      await stranger.acknowledge(id, TEXT);
      await caller.acknowledge(unknownId(), TEXT);
      break;
    case 4:
      await caller.acknowledge(id, "");
      break;
    default:
  }
  const isAsync = turn % 2 === 0;
  await caller.acknowledge(id, TEXT, isAsync ? { headers: { Prefer: "respond-async" } } : {});
}
