import type { Caller } from "@adrelay/relay-kit";
import type { Response } from "express";

/** A caller that is gone once its connection closes before the answer was sent. It may have closed while the body was read. */
export function callerOf(response: Response): Caller {
  const caller: { isGone: boolean; onGone: Caller["onGone"] } = {
    isGone: response.closed,
    onGone: undefined,
  };
  response.on("close", () => {
    if (!response.writableFinished) {
      caller.isGone = true;
      caller.onGone?.();
    }
  });
  return caller;
}
