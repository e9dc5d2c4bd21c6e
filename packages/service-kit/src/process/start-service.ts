import type { FieldFault } from "@adrelay/contract";
import { describeFaults } from "../config/load-config.ts";
import { ListenError } from "../http/http-server.ts";
import { CannotStartError } from "./cannot-start-error.ts";
import { RedisNotDurableError } from "./open-redis.ts";
import { type RunnableService, runService } from "./run-service.ts";

/** Exit code for settings that can't be used; nothing was started. */
export const EXIT_FAULTY_SETTINGS = 2;

export type ComposeResult =
  | { readonly kind: "ok"; compose(): Promise<RunnableService> }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** The whole of a `main.ts`: exits with 2 on faulty settings, with 1 if a part can't start, else runs. */
export async function startService(name: string, prepared: ComposeResult): Promise<void> {
  if (prepared.kind === "faulty") {
    process.stderr.write(`${name}: these settings can't be used\n${describeFaults(prepared.faults)}\n`);
    process.exit(EXIT_FAULTY_SETTINGS);
  }
  // Until it runs there is nothing to drain.
  const leave = () => process.exit(0);
  process.on("SIGTERM", leave).on("SIGINT", leave).on("disconnect", leave);
  try {
    const service = await prepared.compose();
    process.off("SIGTERM", leave).off("SIGINT", leave).off("disconnect", leave);
    runService(service);
  } catch (error) {
    process.stderr.write(`${name}: ${describeFailure(error)}\n`);
    process.exit(1);
  }
}

function describeFailure(error: unknown): string {
  const isExpected =
    error instanceof CannotStartError ||
    error instanceof ListenError ||
    error instanceof RedisNotDurableError;
  if (isExpected) {
    return error.message;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
