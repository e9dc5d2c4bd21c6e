import { AGE_MAX, GENDERS } from "@adrelay/contract";
import { z } from "zod";

/** What a sensible person expects for a prompt, and what the ad server made of it. */
export type EvaluatedOutcome = "fill" | "no_fill" | "reject";
export const EVALUATED_OUTCOMES = ["fill", "no_fill", "reject"] as const;

/** One line of a file of labelled prompts. */
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
  /** Where a fill is expected: the categories that an ad may be of. */
  categories: z.array(z.string()),
  why: z.string().optional(),
});
export type LabelledOutcome = z.infer<typeof labelledOutcomeSchema>;

/** Reads a file's lines of JSON; throws a SyntaxError that names the line. */
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

/** A line with what came of it. */
export interface Judged {
  readonly expected: LabelledOutcome;
  readonly outcome: EvaluatedOutcome;
  /** Category of the ad, or the topic that forbade one. */
  readonly detail: string;
}

/** Whether the outcome, and of a fill the category, is as expected. */
export function isRight({ expected, outcome, detail }: Judged): boolean {
  return outcome === expected.expect && (outcome !== "fill" || expected.categories.includes(detail));
}
