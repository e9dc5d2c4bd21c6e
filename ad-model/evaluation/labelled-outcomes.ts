import { AGE_MAX, GENDERS } from "@adrelay/contract";
import { z } from "zod";
import type { Judgment } from "./judge-prompts.ts";

export type EvaluatedOutcome = "fill" | "no_fill" | "reject";
export const EVALUATED_OUTCOMES = ["fill", "no_fill", "reject"] as const;

/** One line of a file of labelled prompts: the outcome that a sensible person expects. */
const labelledOutcomeSchema = z.strictObject({
  id: z.string(),
  prompt: z.string().min(1),
  country: z
    .string()
    .regex(/^[A-Z]{2}$/, "must be two upper-case letters")
    .optional(),
  age: z.int().min(0).max(AGE_MAX).optional(),
  gender: z.enum(GENDERS).optional(),
  language: z.string(),
  expect: z.enum(EVALUATED_OUTCOMES),
  /** The categories that an ad may have; empty unless a fill is expected. */
  categories: z.array(z.string()),
  why: z.string().optional(),
});
export type LabelledOutcome = z.infer<typeof labelledOutcomeSchema>;

/** Reads the lines of a file, each a JSON object. Throws a SyntaxError that names a faulty line. */
export function parseLabelledOutcomes(text: string): LabelledOutcome[] {
  return text.split("\n").flatMap((line, index) => {
    if (line.trim() === "") {
      return [];
    }
    try {
      return [labelledOutcomeSchema.parse(JSON.parse(line))];
    } catch (error) {
      throw new SyntaxError(`line ${index + 1}: ${describeFault(error)}`);
    }
  });
}

function describeFault(error: unknown): string {
  if (error instanceof z.ZodError) {
    return error.issues
      .map(({ path, message }) => (path.length === 0 ? message : `${path.join(".")}: ${message}`))
      .join("; ");
  }
  return error instanceof Error ? error.message : "unreadable";
}

/** A labelled prompt with the ad server's judgment. */
export interface Judged {
  readonly expected: LabelledOutcome;
  readonly judgment: Judgment;
}

/** Whether the outcome is as expected. The first ad of a fill must also have an expected category. */
export function isRight({ expected, judgment }: Judged): boolean {
  return (
    judgment.outcome === expected.expect &&
    (judgment.outcome !== "fill" || expected.categories.includes(judgment.ads[0].category))
  );
}
