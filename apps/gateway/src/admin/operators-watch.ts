/**
 * Keeps the operators of a gateway as their file is, by the rules of the publishers' file: a change is taken after two looks
 * found the same, or at once on SIGHUP; a faulty file, or one that is gone, changes nothing and is logged once.
 */
import { type Finding, faultFields, isSameFinding, lookAgain } from "@adrelay/provider";
import type { Logger } from "pino";
import type { OperatorDirectory } from "./operator-directory.ts";

export class OperatorsWatch {
  readonly #directory: OperatorDirectory;
  readonly #log: Pick<Logger, "info" | "error">;
  /** What the last look found, if it differs from what was read. */
  #seen: Finding | undefined;

  constructor(directory: OperatorDirectory, log: Pick<Logger, "info" | "error">) {
    this.#directory = directory;
    this.#log = log;
  }

  /** Looks at the file. To be called again and again. */
  async look(): Promise<void> {
    const { found } = this.#directory;
    const now = await lookAgain(found.keys());
    const isSettled = this.#seen !== undefined && isSameFinding(now, this.#seen);
    this.#seen = isSameFinding(now, found) ? undefined : now;
    if (isSettled && this.#seen !== undefined) {
      this.#load();
    }
  }

  /** Reads the file now, whether it changed or not. */
  onHangUp(): void {
    if (this.#directory.found.size > 0) {
      this.#load();
    }
  }

  #load(): void {
    const result = this.#directory.load();
    const log = this.#log;
    this.#seen = undefined;
    switch (result.kind) {
      case "faulty":
        log.error({ event: "operators_refused", ...faultFields(result.faults) });
        return;
      case "unchanged":
        log.info({ event: "operators_unchanged" });
        return;
      case "reloaded":
        log.info({
          event: "operators_reloaded",
          operators: this.#directory.current.length,
          ...result.diff,
        });
        return;
      default:
        result satisfies never;
    }
  }
}
