/** The operators of the admin API: their tokens, and what each may do. From settings, and from a file. */
import { type FieldFault, ownKeySchema, type PublisherId, publisherIdSchema } from "@adrelay/contract";
import { digestSchema, parseYamlText } from "@adrelay/core";
import { digestKey, type FileReader, whyUnreadable } from "@adrelay/provider";
import { z } from "zod";

/** What an operator may do: `view` reads, `operate` also changes. */
const ROLES = ["view", "operate"] as const;
export type Role = (typeof ROLES)[number];

/** A user of the admin API, by the name that the audit shows. */
export interface Operator {
  readonly name: string;
  readonly tokenDigests: readonly Buffer[];
  readonly role: Role;
  /** All that the operator sees and changes; undefined for all publishers. */
  readonly publishers: readonly PublisherId[] | undefined;
  /** When its tokens end to be valid; undefined if they don't. */
  readonly expiresAtMs: number | undefined;
}

/** The name of the operator who has ADMIN_TOKEN. */
const SINGLE_OPERATOR = "admin";

const NAME = /^[A-Za-z0-9_-]{1,32}$/;

/** `name:token`, as it is written in a setting. Such an operator may do everything. */
export const operatorSchema = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,32}:\S+$/, "must be name:token, the name of 1 to 32 letters, digits, _ or -")
  .transform((text, context): Operator => {
    const at = text.indexOf(":");
    const token = text.slice(at + 1);
    for (const { message } of ownKeySchema.safeParse(token).error?.issues ?? []) {
      context.addIssue({ code: "custom", message: `the token ${message}` });
    }
    return allowEverything(text.slice(0, at), token);
  });

function allowEverything(name: string, token: string): Operator {
  return {
    name,
    tokenDigests: [Buffer.from(digestKey(token), "hex")],
    role: "operate",
    publishers: undefined,
    expiresAtMs: undefined,
  };
}

const fileSchema = z.strictObject({
  operators: z.array(
    z
      .strictObject({
        name: z.string().regex(NAME, "must be 1 to 32 letters, digits, _ or -"),
        token_sha256: z.array(digestSchema).min(1),
        role: z.enum(ROLES, { error: `must be one of ${ROLES.join(", ")}` }),
        publishers: z.array(publisherIdSchema).min(1).optional(),
        expires: z.iso
          .datetime({ offset: true, error: "must be a time such as 2027-01-31T00:00:00Z" })
          .optional(),
      })
      .transform(
        ({ name, token_sha256, role, publishers, expires }): Operator => ({
          name,
          tokenDigests: token_sha256.map((hex) => Buffer.from(hex, "hex")),
          role,
          publishers,
          expiresAtMs: expires === undefined ? undefined : Date.parse(expires),
        }),
      ),
  ),
});

/** The settings that name operators. */
export interface OperatorSettings {
  readonly ADMIN_TOKEN?: string | undefined;
  readonly ADMIN_TOKENS?: readonly Operator[] | undefined;
  readonly OPERATORS_FILE?: string | undefined;
}

export interface LoadedOperators {
  readonly operators: readonly Operator[];
  readonly faults: readonly FieldFault[];
}

/** All operators that the settings and their file name. */
export function loadOperators(settings: OperatorSettings, reader: FileReader): LoadedOperators {
  const { ADMIN_TOKEN: single, ADMIN_TOKENS: named = [], OPERATORS_FILE: file } = settings;
  const inFile = file === undefined ? NOBODY : readOperators(file, reader);
  const operators = [
    ...(single === undefined ? [] : [allowEverything(SINGLE_OPERATOR, single)]),
    ...named,
    ...inFile.operators,
  ];
  return { operators, faults: [...inFile.faults, ...repetitions(operators, file)] };
}

const NOBODY: LoadedOperators = { operators: [], faults: [] };

function readOperators(file: string, reader: FileReader): LoadedOperators {
  const setting = "OPERATORS_FILE";
  let text: string;
  try {
    text = reader.read(file);
  } catch (error) {
    const message = `the file that it names ${whyUnreadable(error)}`;
    return { operators: [], faults: [{ path: setting, message }] };
  }
  const parsed = parseYamlText(text, fileSchema);
  if (parsed.kind === "ok") {
    return { operators: parsed.value.operators, faults: [] };
  }
  const faults = parsed.faults.map(({ path, message }) => ({ path: `${setting} ${path}`.trim(), message }));
  return { operators: [], faults };
}

/** Names and tokens must be distinct, so that a token identifies an operator. */
function repetitions(operators: readonly Operator[], file: string | undefined): FieldFault[] {
  const isDistinct = (values: readonly string[]) => new Set(values).size === values.length;
  const path = file === undefined ? "ADMIN_TOKENS" : "ADMIN_TOKENS, OPERATORS_FILE";
  const faults: FieldFault[] = [];
  if (!isDistinct(operators.map(({ name }) => name))) {
    faults.push({ path, message: `names must be distinct; ${SINGLE_OPERATOR} is the name of ADMIN_TOKEN` });
  }
  if (!isDistinct(operators.flatMap((one) => one.tokenDigests.map((digest) => digest.toString("hex"))))) {
    faults.push({ path, message: "tokens must be distinct, and other than ADMIN_TOKEN" });
  }
  return faults;
}
