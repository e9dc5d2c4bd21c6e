import { getNumberFromEnv, getStringFromEnv } from "@opentelemetry/core";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace";

/** What OTEL_TRACES_SAMPLER names; what it doesn't know counts as not set, as the SDK's specification has it. */
export function samplerOfEnvironment(): Sampler {
  const ratio = () => new TraceIdRatioBasedSampler(getNumberFromEnv("OTEL_TRACES_SAMPLER_ARG") ?? 1);
  switch (getStringFromEnv("OTEL_TRACES_SAMPLER")) {
    case "always_on":
      return new AlwaysOnSampler();
    case "always_off":
      return new AlwaysOffSampler();
    case "traceidratio":
      return ratio();
    case "parentbased_traceidratio":
      return new ParentBasedSampler({ root: ratio() });
    case "parentbased_always_off":
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    default:
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
  }
}
