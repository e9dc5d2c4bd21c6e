import type { Caller } from "@adrelay/relay-kit";
import type { Response } from "express";

/** A caller that is gone once its connection closes before the answer was sent. */
export function callerOf(response: Response): Caller {
  const caller: { isGone: boolean; onGone: Caller["onGone"] } = { isGone: false, onGone: undefined };
  response.on("close", () => {
    if (!response.writableFinished) {
      caller.isGone = true;
      caller.onGone?.();
    }
  });
  return caller;
}
