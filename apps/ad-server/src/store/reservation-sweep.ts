import { Periodic } from "@adrelay/service-kit";
import type { Logger } from "pino";
import { z } from "zod";
import type { Books, Stored } from "./books.ts";
import { BOOK_KEYS } from "./keys.ts";

/** Bounds the time that one batch holds Redis: about a millisecond. */
const BATCH_MAX = 100;
const INTERVAL_MS = 1000;

/** Ends a batch of the reservations whose acknowledgment window has passed; answers how many it were. */
export async function expireReservations(books: Books, batchMax = BATCH_MAX): Promise<Stored<number>> {
  const stored = await books.run("expire-reservations", BOOK_KEYS, [batchMax]);
  return stored.kind === "ok" ? { kind: "ok", value: z.int().parse(stored.value) } : stored;
}

/** Releases what was reserved and never acknowledged. Every process sweeps; each reservation ends once. */
export function sweepReservations(books: Books, log: Logger): Periodic {
  return new Periodic(
    async () => {
      const expired = await expireReservations(books);
      if (expired.kind === "unavailable" || expired.value === 0) {
        // While Redis is away readiness says so; it needs no second line a second.
        return INTERVAL_MS;
      }
      log.info({ event: "reservations_expired", count: expired.value });
      return expired.value < BATCH_MAX ? INTERVAL_MS : 0;
    },
    INTERVAL_MS,
    (error) => log.error({ event: "reservation_sweep_failed", err: error }),
  );
}
