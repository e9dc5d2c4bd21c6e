/** Calls about publishers. */
import { adoptionSchema, publisherIdSchema, publishersViewSchema } from "@adrelay/contract";
import { z } from "zod";
import type { ZodOpenApiPathsObject } from "zod-openapi";
import { adoptionFormSchema } from "../../apps/gateway/src/admin/adoptions.ts";
import { call, FOR_ALL_TOKENS } from "./call.ts";

export const PUBLISHER_PATHS: ZodOpenApiPathsObject = {
  "/publishers": {
    get: call({
      id: "listPublishers",
      tag: "Publishers",
      summary: "The publishers that are in force, with their keys' ids",
      answer: publishersViewSchema.meta({ id: "Publishers" }),
      never: FOR_ALL_TOKENS,
    }),
  },
  "/publishers/{publisher}/adopt": {
    post: call({
      id: "adoptPublisher",
      tag: "Publishers",
      summary: "Give what a publisher left to another one, in batches",
      description: "Repeat it with `next_cursor` until that is null.",
      params: { path: z.object({ publisher: publisherIdSchema }) },
      body: adoptionFormSchema.meta({ id: "AdoptionRequest" }),
      examples: { first: { value: { to: "acme" } } },
      answer: adoptionSchema.meta({ id: "Adoption" }),
    }),
  },
};
