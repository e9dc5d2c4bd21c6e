import { type FieldFault, faultsOf } from "@adrelay/contract";
import type { z } from "zod";

export type Environment = Readonly<Record<string, string | undefined>>;

export type ConfigResult<T> =
  | { readonly kind: "ok"; readonly config: Readonly<T> }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/**
 * Reads settings from the environment, once, at start. Blank variables count as not set. Every fault is
 * reported, by the variable's name and never by its value: values can be secrets.
 */
export function loadConfig<T>(schema: z.ZodType<T>, env: Environment): ConfigResult<T> {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => (value ?? "").trim() !== ""));
  const parsed = schema.safeParse(set);
  return parsed.success
    ? { kind: "ok", config: Object.freeze(parsed.data) }
    : { kind: "faulty", faults: faultsOf(parsed.error) };
}

/** One line a fault, for standard error. */
export function describeFaults(faults: readonly FieldFault[]): string {
  return faults.map((fault) => `  ${fault.path || "settings"}: ${fault.message}`).join("\n");
}
