/** Calls through the proxy that show something in each panel of turns: most of them are right, some are cut or get no ad. */
import { pause } from "@adrelay/testkit";

export interface TurnsOptions {
  readonly proxyUrl: string;
  readonly apiKey: string;
  /** Ends the calls. */
  readonly signal: AbortSignal;
}

/** What the demo model does to the calls of a round, in turn. Without a fault an answer is whole. */
const FAULTS = [
  undefined,
  undefined,
  "cut-after=30",
  "status=503",
  "refuse-enhanced=422",
  "slow-headers=300",
];
const LANES = 2;
const PAUSE_MS = 150;
const CALL_TIMEOUT_MS = 10_000;

/** Runs until the signal fires. Answers are not checked, because faults run meanwhile. */
export async function runTurns(options: TurnsOptions): Promise<void> {
  const lanes = Array.from({ length: LANES }, async (_, lane) => {
    for (let at = lane; !options.signal.aborted; at += 1) {
      await callModel(options, at).catch(() => {});
      await pause(PAUSE_MS);
    }
  });
  await Promise.all(lanes);
}

async function callModel({ proxyUrl, apiKey, signal }: TurnsOptions, at: number): Promise<void> {
  const fault = FAULTS[at % FAULTS.length];
  const isOff = at % 7 === 6;
  const answer = await fetch(`${proxyUrl}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "X-Service-API-Key": apiKey,
      Authorization: "Bearer any-key",
      "Content-Type": "application/json",
      "X-Adrelay-Session-Id": `observed-${at}`,
      "X-Adrelay-User-Agent": "adrelay-observe",
      "X-Adrelay-User-IP": "203.0.113.7",
      ...(isOff ? { "X-Adrelay-Ad": "off" } : {}),
      ...(fault === undefined ? {} : { "X-Demo-Fault": fault }),
    },
    body: JSON.stringify({
      model: "demo",
      stream: at % 3 !== 0,
      messages: [{ role: "user", content: `Which running shoes should I buy for race ${at}?` }],
    }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_TIMEOUT_MS)]),
  });
  await answer.text();
}
