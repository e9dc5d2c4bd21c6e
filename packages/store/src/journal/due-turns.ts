/** Settles turns that are due: their proxy is gone or was too slow, or the next step that they waited for didn't come. */
import type { AdResponseId } from "@adrelay/contract";
import type { StoreLog } from "../store-log.ts";
import type { TurnSettler } from "./turn-settler.ts";

export interface DueTurnsParts {
  readonly settler: Pick<TurnSettler, "settle">;
  readonly log: StoreLog;
  readonly isStopping: () => boolean;
}

/** A text may have a megabyte. */
const AT_ONCE = 8;

export class DueTurns {
  readonly #parts: DueTurnsParts;

  constructor(parts: DueTurnsParts) {
    this.#parts = parts;
  }

  /** Settles the turns that the sweep claimed. One that can't be settled now comes up again in a later sweep. */
  async settleAll(ids: readonly AdResponseId[]): Promise<void> {
    const { log, isStopping } = this.#parts;
    let settled = 0;
    for (let from = 0; from < ids.length && !isStopping(); from += AT_ONCE) {
      const results = await Promise.allSettled(ids.slice(from, from + AT_ONCE).map((id) => this.#settle(id)));
      for (const result of results) {
        if (result.status === "rejected") {
          log.warn({ event: "turn_postponed", err: result.reason });
        } else if (result.value === "queued" || result.value === "abandoned") {
          settled += 1;
        }
      }
    }
    if (settled > 0) {
      log.info({ event: "turns_settled", settled });
    }
  }

  #settle(id: AdResponseId) {
    return this.#parts.settler.settle({
      id,
      requestId: `turn:${id}`,
      traceparent: undefined,
      own: undefined,
    });
  }
}
