/** Says in plain words what is wrong in a catalogue. */
import type { FieldFault } from "@adrelay/contract";
import type { z } from "zod";

const KIND_WORDS: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a group of members",
};
const kindWords = (kind: string) => KIND_WORDS[kind] ?? kind;

/** Message of a fault for which the schema has none of its own. */
function describeIssue(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return describeKind(issue.expected, issue.input);
    case "too_small":
      return issue.inclusive === false
        ? `must be more than ${issue.minimum}`
        : describeBound(issue.origin, Number(issue.minimum), "at least");
    case "too_big":
      return describeBound(issue.origin, Number(issue.maximum), "at most");
    case "invalid_value":
      return `must be ${issue.values.map(String).join(" or ")}`;
    default:
      return undefined;
  }
}

function describeKind(expected: string, value: unknown): string {
  if (value === undefined) {
    return "is missing";
  }
  const must = `must be ${kindWords(expected)}`;
  return expected === "int" && typeof value === "number" ? must : `${must}, but is ${kindOf(value)}`;
}

function describeBound(origin: string, bound: number, word: "at least" | "at most"): string {
  const unit = { string: "characters", array: "entries" }[origin];
  if (unit === undefined) {
    return `must be ${word} ${bound}`;
  }
  return word === "at least" && bound === 1 ? "must not be empty" : `must have ${word} ${bound} ${unit}`;
}

function kindOf(value: unknown): string {
  if (value === null) {
    return "empty";
  }
  return kindWords(Array.isArray(value) ? "array" : typeof value);
}

/** Checks a value against a schema. Returns the data, or the faults in plain words; an unknown member is one of its own. */
export function parsePlainly<T extends z.ZodType>(
  schema: T,
  value: unknown,
): { readonly data: z.infer<T> } | { readonly faults: readonly FieldFault[] } {
  const parsed = schema.safeParse(value, { error: describeIssue });
  return parsed.success ? { data: parsed.data } : { faults: parsed.error.issues.flatMap(faultsOfIssue) };
}

/** A key of another form may hold anything, such as a point. */
const MEMBER_NAME = /^\w{1,32}$/;

function faultsOfIssue(issue: z.core.$ZodIssue): FieldFault[] {
  const path = issue.path.map(String);
  if (issue.code !== "unrecognized_keys") {
    return [{ path: path.join("."), message: issue.message }];
  }
  return issue.keys.map((key) =>
    MEMBER_NAME.test(key)
      ? { path: [...path, key].join("."), message: "is no member that is known here" }
      : { path: path.join("."), message: "has a member that isn't known here" },
  );
}

/** What the parser of YAML says, by its beginning, and what it means in a catalogue. */
const YAML_WORDS: readonly (readonly [start: string, words: string])[] = [
  [
    "bad indentation",
    "is indented wrongly, or a text with a colon has no quotes: members of an ad begin in one column",
  ],
  ["deficient indentation", "is indented too little, or a bracket or quote before it isn't closed"],
  ["duplicated mapping key", "is a member that the ad has already"],
  [
    "end of the stream or a document separator is expected",
    "doesn't continue the list of ads: check its indentation, which must be blanks and no tabs",
  ],
  ["unexpected end of the", "ends within brackets or quotes"],
  ["unidentified alias", "refers to a name that no & defines"],
];

/** What is wrong with a text that isn't YAML. The parser's own words stand behind ours. */
export function describeYamlError(reason: string): string {
  const [, words] = YAML_WORDS.find(([start]) => reason.startsWith(start)) ?? [];
  return `${words ?? "isn't YAML from here on"} (the parser says: ${reason})`;
}
