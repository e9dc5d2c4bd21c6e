/** Turns a description of operations into a document of OpenAPI 3.1. */
import { ADRELAY_VERSION } from "@adrelay/service-kit";
import { z } from "zod";
import { createDocument, type ZodOpenApiObject, type ZodOpenApiOperationObject } from "zod-openapi";
import { EVERY_CODE, jsonAnswer, problemAnswers } from "./answers.ts";
import { shareAnswers } from "./share-answers.ts";

/** What the three documents say differently. */
export interface ApiDescription {
  readonly title: string;
  readonly description: string;
  readonly servers: ZodOpenApiObject["servers"];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: ZodOpenApiObject["paths"];
  readonly securitySchemes: NonNullable<ZodOpenApiObject["components"]>["securitySchemes"];
}

/** Path of each listener's own document. */
const DOCUMENT_PATH = "/openapi.json";

/** The document as text, as it is committed and served. */
export function renderDocument({ title, description, tags, paths, ...api }: ApiDescription): string {
  const document = createDocument(
    {
      openapi: "3.1.0",
      info: { title, version: ADRELAY_VERSION, description, license: { name: "MIT", identifier: "MIT" } },
      servers: api.servers ?? [],
      tags: [...tags],
      security: [],
      paths: { ...paths, [DOCUMENT_PATH]: { get: documentOperation() } },
      components: { securitySchemes: api.securitySchemes ?? {} },
    },
    { override: simplifySchema },
  );
  return `${JSON.stringify(shareAnswers(document), null, 2)}\n`;
}

/**
 * What readers need of a schema. A transform has no schema of its own: those of answers only normalize a text,
 * so that its schema is that of the text.
 */
function simplifySchema({ jsonSchema, zodSchema, io }: Parameters<NonNullable<Override>>[0]): void {
  const { def } = zodSchema._zod;
  if (jsonSchema.format !== undefined) {
    // The format says the same, and readers understand it.
    delete jsonSchema.pattern;
  }
  if (typeof jsonSchema.const === "number") {
    // Some generators of clients leave out an answer with a number as `const`. An enumeration of one means the same.
    jsonSchema.enum = [jsonSchema.const];
    delete jsonSchema.const;
  }
  if (io === "input") {
    return;
  }
  if (def.type === "pipe" && def.out._zod.def.type === "transform") {
    const { $schema, ...schema } = z.toJSONSchema(def.in, { io: "input" });
    Object.assign(jsonSchema, schema);
  }
  // A later version may send further members.
  if (jsonSchema.additionalProperties === false) {
    delete jsonSchema.additionalProperties;
  }
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) {
    delete jsonSchema.minimum;
  }
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) {
    delete jsonSchema.maximum;
  }
}

type Override = NonNullable<Parameters<typeof createDocument>[1]>["override"];

function documentOperation(): ZodOpenApiOperationObject {
  return {
    operationId: "getOpenApiDocument",
    summary: "This document",
    tags: ["Document"],
    security: [],
    responses: {
      "200": jsonAnswer({
        description: "The document of this listener.",
        schema: z.looseObject({ openapi: z.string() }),
        headers: { "Cache-Control": z.string().meta({ description: "It may be kept for an hour." }) },
      }),
      ...problemAnswers(EVERY_CODE),
    },
  };
}

/** A part of every document. */
export const DOCUMENT_TAG = { name: "Document", description: "The description of the API." } as const;
