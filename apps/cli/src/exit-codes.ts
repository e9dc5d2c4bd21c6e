/** What the command's end tells a script. */
export const EXIT = {
  done: 0,
  refused: 1,
  usage: 2,
  unavailable: 3,
  denied: 4,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_MEANINGS = {
  [EXIT.done]: "done",
  [EXIT.refused]:
    "refused, or a check failed: not a dead letter, an unknown id, a fault that the doctor found",
  [EXIT.usage]: "the command line can't be understood, or wants --yes; nothing was changed",
  [EXIT.unavailable]: "the relay can't be reached, can't do it right now, or answered nonsense",
  [EXIT.denied]: "not allowed: no token, or a wrong one",
  [EXIT.interrupted]: "interrupted (Ctrl-C)",
} as const satisfies Record<ExitCode, string>;

/** A command line that can't be understood; the message says what to write instead. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
