/**
 * The publishers' file: its form, and everything that can be wrong with its text. Whether the keys exist to which it
 * refers is for the processes to check that use it.
 */
import {
  API_KEY_HEADER,
  baseUrlSchema,
  type FieldFault,
  headerNameSchema,
  publisherIdSchema,
} from "@adrelay/contract";
import { z } from "zod";
import { type CallerKey, callerKeySchema, digestSchema, keyOfDigest } from "./caller-keys.ts";
import { quotasSchema, UNKNOWN_ACK, type UnknownAck } from "./quotas.ts";
import { AD_CHOICES, type AdChoice, EMPTY_ANSWERS, type EmptyAnswers } from "./turns.ts";
import { parseYamlText } from "./yaml-text.ts";

const providerSchema = z
  .strictObject({
    url: baseUrlSchema,
    // A key that is written here by mistake doesn't match, and is refused without being shown.
    api_key_env: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable")
      .optional(),
    // An absolute path, for the same reason.
    api_key_file: z.string().regex(/^\//, "must be the absolute path of a file").optional(),
    api_key_header: headerNameSchema.default(API_KEY_HEADER),
    ca_file: z.string().min(1).optional(),
    client_cert_file: z.string().min(1).optional(),
    client_key_file: z.string().min(1).optional(),
  })
  .refine(({ api_key_env, api_key_file }) => (api_key_env === undefined) !== (api_key_file === undefined), {
    error: "must have either api_key_env or api_key_file",
  });

const SKIP_OR_ALLOW = "must be skip or allow";

const publisherSchema = z
  .strictObject({
    id: publisherIdSchema,
    name: z.string().min(1),
    /** Keys with nothing but their digest. */
    key_sha256: z.array(digestSchema).min(1).optional(),
    keys: z.array(callerKeySchema).min(1).optional(),
    provider: providerSchema.optional(),
    unknown_ack: z.enum(UNKNOWN_ACK, "must be accept or reject").optional(),
    quotas: quotasSchema.optional(),
    // The following are for the model proxy.
    empty_answers: z.enum(EMPTY_ANSWERS, "must be acknowledge or abandon").optional(),
    /** Of OpenAI's Responses with `store`: the provider of the model keeps the enhanced prompt. */
    stored_responses: z.enum(AD_CHOICES, SKIP_OR_ALLOW).optional(),
    /** Of calls whose message that would be changed, or what follows it, is marked for the model's cache. */
    cache_marked: z.enum(AD_CHOICES, SKIP_OR_ALLOW).optional(),
    openai_base_url: baseUrlSchema.optional(),
    anthropic_base_url: baseUrlSchema.optional(),
  })
  .refine(({ key_sha256, keys }) => key_sha256 !== undefined || keys !== undefined, {
    error: "must have keys, or key_sha256",
  });

const fileSchema = z.strictObject({ publishers: z.array(publisherSchema).min(1) });

/** No more than the ids that are right. */
const idsSchema = z.looseObject({
  publishers: z.array(
    z.looseObject({ id: publisherIdSchema.optional().catch(undefined) }).catch({ id: undefined }),
  ),
});

/** A publisher as the file has it. */
export interface PublisherEntry
  extends Pick<z.infer<typeof publisherSchema>, "id" | "name" | "provider" | "quotas">,
    ModelRules {
  /** Of both forms. */
  readonly keys: readonly CallerKey[];
  readonly unknownAck: UnknownAck | undefined;
}

/** What a publisher's entry says of calls of models; undefined: as the settings say. */
export interface ModelRules {
  readonly emptyAnswers: EmptyAnswers | undefined;
  readonly storedResponses: AdChoice | undefined;
  readonly cacheMarked: AdChoice | undefined;
  readonly openaiBaseUrl: string | undefined;
  readonly anthropicBaseUrl: string | undefined;
}

/** How a publisher's entry names its own provider. */
export type ProviderEntry = z.infer<typeof providerSchema>;

/** The publishers of a text, or everything that is wrong with it. The path of a fault is a place in the file. */
export type PublishersFileResult =
  | { readonly kind: "ok"; readonly entries: readonly PublisherEntry[] }
  | {
      readonly kind: "faulty";
      readonly faults: readonly FieldFault[];
      /** For looking for more faults; empty if the form is wrong. */
      readonly entries: readonly PublisherEntry[];
    };

/** Parses the text of a publishers' file. No fault shows a part of the text: it may contain a key. */
export function parsePublishersFile(text: string): PublishersFileResult {
  const parsed = parseYamlText(text, fileSchema);
  if (parsed.kind === "faulty") {
    return { ...parsed, faults: [...parsed.faults, ...repeatedIdsIn(text)], entries: [] };
  }
  const entries = parsed.value.publishers.map(entryOf);
  const faults = repeatedEntries(entries);
  return faults.length > 0 ? { kind: "faulty", faults, entries } : { kind: "ok", entries };
}

function entryOf({ key_sha256 = [], keys = [], ...given }: z.infer<typeof publisherSchema>): PublisherEntry {
  const { id, name, provider, quotas } = given;
  return {
    id,
    name,
    provider,
    quotas,
    keys: [...key_sha256.map(keyOfDigest), ...keys],
    unknownAck: given.unknown_ack,
    emptyAnswers: given.empty_answers,
    storedResponses: given.stored_responses,
    cacheMarked: given.cache_marked,
    openaiBaseUrl: given.openai_base_url,
    anthropicBaseUrl: given.anthropic_base_url,
  };
}

/** Finds ids and keys that appear more than once: with them, answers would depend on the order of the file. */
function repeatedEntries(entries: readonly PublisherEntry[]): FieldFault[] {
  const repeatedDigests = repeats(entries.flatMap(({ keys }) => keys.map(({ digest }) => digest)));
  return [
    ...repeatedIds(entries),
    ...entries.flatMap(({ id, keys }) =>
      repeats(keys.map((key) => key.id)).map((key) => {
        return { path: id, message: `the id ${key} of a key appears more than once` };
      }),
    ),
    ...repeatedDigests.map((digest) => ({
      path: "",
      message: `the key ${digest.slice(0, 8)}… appears more than once`,
    })),
  ];
}

function repeatedIds(entries: readonly { readonly id?: string | undefined }[]): FieldFault[] {
  return repeats(entries.flatMap(({ id }) => id ?? [])).map((id) => {
    return { path: id, message: "appears more than once" };
  });
}

/** Of a file whose form is wrong, so that one look at it names both faults. */
function repeatedIdsIn(text: string): FieldFault[] {
  const loose = parseYamlText(text, idsSchema);
  return loose.kind === "faulty" ? [] : repeatedIds(loose.value.publishers);
}

function repeats(values: readonly string[]): string[] {
  const seen = new Set<string>();
  return [...new Set(values.filter((value) => seen.size === seen.add(value).size))];
}
