import { z } from "zod";

/** One value of a query's result, with its labels. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  /** May be NaN or infinite. */
  readonly value: number;
}

export type PrometheusAnswer =
  | { readonly kind: "ok"; readonly samples: readonly Sample[] }
  | { readonly kind: "failed"; readonly why: string };

/** A rule and its state in Prometheus. */
export interface Rule {
  readonly kind: "alerting" | "recording";
  readonly name: string;
  readonly expr: string;
  /** Empty if its last evaluation went well. */
  readonly lastError: string;
  /** Whether it has been evaluated at least once. */
  readonly isKnown: boolean;
  /** inactive, pending or firing; undefined for a recording rule. */
  readonly state: string | undefined;
}

export interface Target {
  readonly job: string;
  readonly isUp: boolean;
  readonly lastError: string;
}

const valueSchema = z.tuple([z.number(), z.string()]);
const sampleSchema = z.object({ metric: z.record(z.string(), z.string()), value: valueSchema });
const querySchema = z.discriminatedUnion("status", [
  z.object({
    status: z.literal("success"),
    data: z.discriminatedUnion("resultType", [
      z.object({ resultType: z.literal("vector"), result: z.array(sampleSchema) }),
      z.object({ resultType: z.literal("scalar"), result: valueSchema }),
    ]),
  }),
  z.object({ status: z.literal("error"), error: z.string() }),
]);
const rulesSchema = z.object({
  data: z.object({
    groups: z.array(
      z.object({
        rules: z.array(
          z.object({
            type: z.enum(["alerting", "recording"]),
            name: z.string(),
            query: z.string(),
            health: z.string(),
            lastError: z.string().default(""),
            state: z.string().optional(),
          }),
        ),
      }),
    ),
  }),
});
const targetsSchema = z.object({
  data: z.object({
    activeTargets: z.array(
      z.object({
        labels: z.looseObject({ job: z.string() }),
        health: z.string(),
        lastError: z.string(),
      }),
    ),
  }),
});

const ASK_TIMEOUT_MS = 10_000;

/** Queries a Prometheus over its HTTP API. Rejects only if it can't be reached or if its answer has another form. */
export class PrometheusClient {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** Evaluates an expression now. Resolves to `failed` if Prometheus refuses the query. */
  async query(expr: string): Promise<PrometheusAnswer> {
    const answer = querySchema.parse(await this.#ask("query", { query: expr }));
    if (answer.status === "error") {
      return { kind: "failed", why: answer.error };
    }
    const { data } = answer;
    return {
      kind: "ok",
      samples:
        data.resultType === "scalar"
          ? [{ labels: {}, value: toNumber(data.result[1]) }]
          : data.result.map(({ metric, value }) => ({ labels: metric, value: toNumber(value[1]) })),
    };
  }

  async rules(): Promise<readonly Rule[]> {
    const { data } = rulesSchema.parse(await this.#ask("rules"));
    return data.groups.flatMap(({ rules }) =>
      rules.map(({ type, name, query, health, lastError, state }) => ({
        kind: type,
        name,
        expr: query,
        lastError,
        isKnown: health !== "unknown",
        state,
      })),
    );
  }

  async targets(): Promise<readonly Target[]> {
    const { data } = targetsSchema.parse(await this.#ask("targets"));
    return data.activeTargets.map(({ labels, health, lastError }) => ({
      job: labels.job,
      isUp: health === "up",
      lastError,
    }));
  }

  async #ask(path: string, parameters: Record<string, string> = {}): Promise<unknown> {
    const search = new URLSearchParams(parameters);
    const response = await fetch(`${this.#url}/api/v1/${path}?${search}`, {
      signal: AbortSignal.timeout(ASK_TIMEOUT_MS),
    });
    return response.json();
  }
}

/** Prometheus writes infinities as +Inf and -Inf. */
function toNumber(text: string): number {
  return text.endsWith("Inf") ? (text.startsWith("-") ? -Infinity : Infinity) : Number(text);
}
