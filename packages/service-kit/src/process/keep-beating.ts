import type { Lifecycle } from "./lifecycle.ts";
import { Periodic } from "./periodic.ts";

/** A sign of life that others can see. */
export interface Heart {
  beat(): Promise<void>;
  /** Says that the process has gone in good order. */
  leave(): Promise<void>;
}

const INTERVAL_MS = 1000;

/** Beats once a second until the stop, quietly: what a beat needs says itself when it is away. */
export function keepBeating(heart: Heart, lifecycle: Lifecycle): void {
  const beats = new Periodic(
    () => heart.beat(),
    INTERVAL_MS,
    () => {},
  );
  lifecycle.onStop("pulse", async () => {
    await beats.stop();
    await heart.leave();
  });
  beats.start();
}
