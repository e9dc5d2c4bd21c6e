import type { Logger } from "pino";
import type { Environment } from "../config/load-config.ts";
import { NO_TRACING, type Tracing } from "./tracing.ts";

export interface TracingOptions {
  /** `service.name` of its spans, unless OTEL_SERVICE_NAME says another. */
  readonly service: string;
  readonly env: Environment;
  readonly log: Logger;
}

/**
 * On if an OTLP endpoint is set, and only then is the SDK loaded. Settings that it can't use don't keep a process
 * from starting: they may be meant for others on the same machine.
 */
export async function openTracing({ service, env, log }: TracingOptions): Promise<Tracing> {
  const endpoint = endpointOf(env);
  if (endpoint === undefined) {
    return NO_TRACING;
  }
  const tracing = URL.canParse(endpoint) ? await loadTracing(service, log) : undefined;
  if (tracing === undefined) {
    // No word of what is wrong: an address can have a password in it.
    log.warn({ event: "tracing_failed", why: "the OTEL_* settings can't be used" });
  }
  return tracing ?? NO_TRACING;
}

async function loadTracing(service: string, log: Logger): Promise<Tracing | undefined> {
  try {
    const { OtelTracing } = await import("./otel-tracing.ts");
    return new OtelTracing(service, log);
  } catch {
    return undefined;
  }
}

/** Where traces go; undefined where nobody wants them. */
function endpointOf(env: Environment): string | undefined {
  const read = (name: string) => (env[name] ?? "").trim();
  const isOff =
    read("OTEL_SDK_DISABLED").toLowerCase() === "true" ||
    read("OTEL_TRACES_EXPORTER").toLowerCase() === "none";
  const endpoint = read("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") || read("OTEL_EXPORTER_OTLP_ENDPOINT");
  return isOff || endpoint === "" ? undefined : endpoint;
}
