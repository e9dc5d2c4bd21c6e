/** Switches tracing on if the environment asks for it. */
import type { Logger } from "pino";
import type { Environment } from "./settings.ts";
import { NO_TRACING, type Tracing } from "./tracing.ts";

export interface TracingOptions {
  /** The `service.name` of the spans, unless OTEL_SERVICE_NAME sets another. */
  readonly service: string;
  readonly env: Environment;
  readonly log: Logger;
}

/**
 * Opens tracing if an OTLP endpoint is set; only then is the SDK loaded. OTEL_* settings that can't be used are logged
 * and do not prevent the start, because they may be meant for other programs on the same machine.
 */
export async function openTracing({ service, env, log }: TracingOptions): Promise<Tracing> {
  const endpoint = endpointOf(env);
  if (endpoint === undefined) {
    return NO_TRACING;
  }
  const tracing = URL.canParse(endpoint) ? await loadTracing(service, log) : undefined;
  if (tracing === undefined) {
    // The line doesn't say which setting is wrong, because an endpoint can contain a password.
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

/** The endpoint that traces are sent to; undefined if none is set or if tracing is switched off. */
function endpointOf(env: Environment): string | undefined {
  const read = (name: string) => (env[name] ?? "").trim();
  const isOff =
    read("OTEL_SDK_DISABLED").toLowerCase() === "true" ||
    read("OTEL_TRACES_EXPORTER").toLowerCase() === "none";
  const endpoint = read("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") || read("OTEL_EXPORTER_OTLP_ENDPOINT");
  return isOff || endpoint === "" ? undefined : endpoint;
}
