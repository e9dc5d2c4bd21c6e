/** What a backend acknowledges by itself, in one stream. */
import { setTimeout as wait } from "node:timers/promises";
import { ACKNOWLEDGE_PATH } from "@adrelay/contract";
import { relayCaller } from "@adrelay/testkit";
import type { TurnsStack } from "./stack.ts";
import type { CallRecord } from "./stream-call.ts";
import type { StreamPlan } from "./streams.ts";

/** What a backend has sent by itself. */
export interface AcknowledgmentRecord {
  readonly adResponseId: string;
  readonly text: string;
  /** Of all answers; an acknowledgment that got no clear answer is sent again. */
  readonly statuses: number[];
}

type Gateway = Pick<TurnsStack, "gatewayUrl" | "callerKey">;

const RETRY_AFTER_MS = 300;
const TIMEOUT_MS = 5000;
/** No backend tries for ever. A busy machine takes long to start a gateway that was killed. */
const GIVE_UP_AFTER_MS = 90_000;
const UNCLEAR = new Set([429, 503]);

export class Acknowledging {
  readonly sent: AcknowledgmentRecord[] = [];
  readonly #gateway: Gateway;
  readonly #when: StreamPlan["acknowledges"];
  readonly #open: Promise<void>[] = [];

  constructor(gateway: Gateway, { acknowledges }: StreamPlan) {
    this.#gateway = gateway;
    this.#when = acknowledges;
  }

  /** To be told of each answer that begins. */
  onHeaders({ adResponseId }: CallRecord): void {
    if (this.#when === "backend_before" && adResponseId !== undefined) {
      this.#acknowledge(adResponseId, "before the end");
    }
  }

  /** The turn is over. Resolves once all acknowledgments have their answers. */
  async end(calls: readonly CallRecord[]): Promise<void> {
    const ids = new Set(calls.flatMap(({ adResponseId }) => adResponseId ?? []));
    if (this.#when === "backend_after" || this.#when === "manual") {
      for (const id of ids) {
        const texts = calls.filter(({ adResponseId }) => adResponseId === id).map(({ text }) => text);
        this.#acknowledge(id, texts.filter((text) => text !== "").join("\n\n"));
      }
    }
    await Promise.all(this.#open);
  }

  /** Each ad once, whatever number of steps told of it. */
  #acknowledge(adResponseId: string, text: string): void {
    if (this.sent.every((one) => one.adResponseId !== adResponseId)) {
      const record = { adResponseId, text, statuses: [] };
      this.sent.push(record);
      this.#open.push(sendUntilClear(this.#gateway, record));
    }
  }
}

async function sendUntilClear(
  { gatewayUrl, callerKey }: Gateway,
  { adResponseId, text, statuses }: AcknowledgmentRecord,
): Promise<void> {
  const caller = relayCaller(gatewayUrl, callerKey);
  const body = JSON.stringify({ ad_response_id: adResponseId, llm_response: text });
  const giveUpAtMs = performance.now() + GIVE_UP_AFTER_MS;
  while (performance.now() < giveUpAtMs) {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const headers = { Prefer: "respond-async" };
    const answer = await caller.send(ACKNOWLEDGE_PATH, body, { headers, signal }).catch(() => undefined);
    if (answer !== undefined) {
      statuses.push(answer.status);
      if (!UNCLEAR.has(answer.status)) {
        return;
      }
    }
    await wait(RETRY_AFTER_MS);
  }
}
