import ms from "ms";
import { z } from "zod";

/**
 * Kinds of settings. Each takes the text of an environment variable; `meta` carries what `.env.example`
 * shows: a description, and the default as text.
 */
export interface SettingNote {
  readonly description: string;
  /** Default, as it would stand in the environment; absent for a setting that is off unless set. */
  readonly example?: string;
}

/** A setting with a default: the default goes through the same parser as a set value. */
export function setting<T extends z.ZodType<unknown, string>>(
  type: T,
  fallback: string,
  description: string,
) {
  return z
    .string()
    .prefault(fallback)
    .pipe(type)
    .meta({ description, example: fallback } satisfies SettingNote);
}

/** A setting that may be left out. */
export function optionalSetting<T extends z.ZodType<unknown, string>>(type: T, description: string) {
  return type.optional().meta({ description } satisfies SettingNote);
}

export const textType = z.string().min(1);
export const redisUrlType = z.url({ protocol: /^rediss?$/, error: "must be a redis:// or rediss:// URL" });

/** A whole number between two bounds, both included. */
export function integerType(min: number, max: number) {
  return z
    .string()
    .regex(/^\d+$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));
}

/** A TCP port; 0 lets the system choose one. */
export const portType = integerType(0, 65_535);

/** Names separated by commas; blanks around them don't count. */
export const listType = z.string().transform((text) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== ""),
);

/** The shortest and the longest time span that a setting takes. */
const DURATION_MIN_MS = 1;
const DURATION_MAX_MS = 3650 * 86_400_000;

/** A time span such as 500ms, 30s, 15m, 72h or 30d, as whole milliseconds, at least 1 ms and at most 3650 days. */
export const durationType = z.string().transform((text, context) => {
  const valueMs = parseDurationMs(text);
  if (valueMs === undefined) {
    context.addIssue({ code: "custom", message: "must be a time span such as 30s, 15m, 72h or 30d" });
    return z.NEVER;
  }
  if (valueMs < DURATION_MIN_MS || valueMs > DURATION_MAX_MS) {
    context.addIssue({ code: "custom", message: "must be at least 1ms and at most 3650d" });
    return z.NEVER;
  }
  return valueMs;
});

/** Time spans separated by commas, as milliseconds; at least one. */
export const durationListType = listType.pipe(
  z.array(durationType).min(1, "must hold at least one time span"),
);

/** Whole milliseconds of a time span with its unit; undefined where the text is none. */
export function parseDurationMs(text: string): number | undefined {
  if (!/^\d+(\.\d+)?\s?(ms|s|m|h|d)$/.test(text)) {
    return undefined;
  }
  // The pattern above is a subset of what `ms` reads; its type only knows literals.
  const valueMs = ms(text as ms.StringValue);
  return Number.isFinite(valueMs) ? Math.round(valueMs) : undefined;
}
