import { AGE_MAX, type FieldFault, GENDERS } from "@adrelay/contract";
import { z } from "zod";
import { parsePlainly } from "../../apps/ad-server/src/catalog/plain-faults.ts";
import type { Judgment } from "./judge-prompts.ts";

export type EvaluatedOutcome = "fill" | "no_fill" | "reject";
export const EVALUATED_OUTCOMES = ["fill", "no_fill", "reject"] as const;

/** One line of a file of labelled prompts: the outcome that a sensible person expects. */
const labelledOutcomeSchema = z
  .strictObject({
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
  })
  .refine(({ expect, categories }) => (expect === "fill") === categories.length > 0, {
    path: ["categories"],
    message: "must name at least one category if expect is fill, and none if it isn't",
  });
export type LabelledOutcome = z.infer<typeof labelledOutcomeSchema>;

/**
 * Reads the lines of a file, each a JSON object. Throws a SyntaxError that names all faults, each with its line.
 *
 * @param known the categories of the catalogue; without them any category is accepted
 */
export function parseLabelledOutcomes(text: string, known?: ReadonlySet<string>): LabelledOutcome[] {
  const outcomes: LabelledOutcome[] = [];
  const faults: string[] = [];
  const lineOf = new Map<string, number>();
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") {
      continue;
    }
    const read = readLine(line);
    if ("data" in read) {
      const { id, categories } = read.data;
      const unknown = categories.filter((category) => known?.has(category) === false);
      const messages = [
        ...(lineOf.has(id) ? [`id: is that of line ${lineOf.get(id)} too`] : []),
        ...unknown.map((category) => `categories: ${category} is no category of the catalogue`),
      ];
      faults.push(...messages.map((message) => `line ${index + 1}: ${message}`));
      lineOf.set(id, lineOf.get(id) ?? index + 1);
      outcomes.push(read.data);
    } else {
      faults.push(`line ${index + 1}: ${read.faults.map(describeFault).join("; ")}`);
    }
  }
  if (outcomes.length === 0 && faults.length === 0) {
    faults.push("has no prompt");
  }
  if (faults.length > 0) {
    throw new SyntaxError(faults.join("\n"));
  }
  return outcomes;
}

function readLine(line: string): ReturnType<typeof parsePlainly<typeof labelledOutcomeSchema>> {
  try {
    return parsePlainly(labelledOutcomeSchema, JSON.parse(line));
  } catch {
    return { faults: [{ path: "", message: "is no JSON object" }] };
  }
}

function describeFault({ path, message }: FieldFault): string {
  return path === "" ? message : `${path}: ${message}`;
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
