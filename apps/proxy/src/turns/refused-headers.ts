/** Which headers of a model call an ad service names in its refusal. Only names that we know: its messages may quote the user. */
import { z } from "zod";
import { headerOfMember } from "./injection-body.ts";

const NAMES_MAX = 5;
/** Far more than an injection has members. */
const FAULTS_MAX = 50;

/** Of a problem of ours, or of a validator in the form of FastAPI's: its list of faults, each with a path. */
const pathsSchema = z.union([
  z
    .looseObject({ errors: z.array(z.looseObject({ path: z.string() })) })
    .transform(({ errors }) => errors.slice(0, FAULTS_MAX).map(({ path }) => path)),
  z
    .looseObject({ detail: z.array(z.looseObject({ loc: z.array(z.union([z.string(), z.number()])) })) })
    .transform(({ detail }) => detail.slice(0, FAULTS_MAX).map(({ loc }) => loc.join("."))),
]);

/** The headers, as a text; undefined if the refusal names none of them. */
export function refusedHeaders(body: unknown): string | undefined {
  const paths = pathsSchema.safeParse(body).data ?? [];
  const names = new Set(paths.map(headerOfMember).filter((name) => name !== undefined));
  return names.size === 0 ? undefined : [...names].slice(0, NAMES_MAX).join(", ");
}
