/** Keeps the operators of a gateway as their file is. */
import { FileWatch, reportFiles } from "@adrelay/relay-kit";
import { describeFault, faultFields } from "@adrelay/service-kit";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { OperatorDirectory, OperatorsReload } from "./operator-directory.ts";

interface OperatorsWatchDeps {
  readonly directory: OperatorDirectory;
  readonly registry: Registry;
  readonly log: Pick<Logger, "info" | "error">;
}

export class OperatorsWatch {
  readonly #deps: OperatorsWatchDeps;
  readonly #files: FileWatch;

  constructor(deps: OperatorsWatchDeps) {
    const { directory, registry } = deps;
    this.#deps = deps;
    this.#files = new FileWatch({ found: () => directory.found, reload: () => this.#reload() });
    reportOperatorsFile(registry, this.#files);
  }

  get hasFile(): boolean {
    return this.#deps.directory.found.size > 0;
  }

  /** False while the file is faulty or gone, and the operators that it had before are in force. */
  get isValid(): boolean {
    return this.#files.isValid;
  }

  /** Looks at the file. To be called again and again. */
  look(): Promise<void> {
    return this.#files.look();
  }

  /** Reads the file now, whether it changed or not. */
  onHangUp(): void {
    this.#files.onHangUp();
  }

  #reload(): OperatorsReload["kind"] {
    const { directory, log } = this.#deps;
    const result = directory.load();
    switch (result.kind) {
      case "faulty":
        log.error({ event: "operators_refused", ...faultFields(result.faults, describeFault) });
        break;
      case "unchanged":
        log.info({ event: "operators_unchanged" });
        break;
      case "reloaded":
        log.info({ event: "operators_reloaded", operators: directory.current.length, ...result.diff });
        break;
      default:
        result satisfies never;
    }
    return result.kind;
  }
}

/** Shows whether the operators' file is in force. */
export function reportOperatorsFile(
  registry: Registry,
  state: Pick<FileWatch, "isValid" | "loadedAtMs">,
): void {
  const name = "adrelay_operators_file";
  const validHelp =
    "0 while this gateway's operators' file is faulty or gone, and the operators that it had before are in force; else 1.";
  const loadedHelp = "When this gateway took the operators that are in force, in seconds since 1970.";
  reportFiles(registry, { name, validHelp, loadedHelp }, () => state);
}
