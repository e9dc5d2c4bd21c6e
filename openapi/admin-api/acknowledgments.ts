/** Calls about single acknowledgments, a page of them, and what users wrote in them. */
import {
  acknowledgmentDetailSchema,
  acknowledgmentPageSchema,
  acknowledgmentStateSchema,
  type ErrorCode,
  erasureSchema,
} from "@adrelay/contract";
import { z } from "zod";
import type { ZodOpenApiPathsObject } from "zod-openapi";
import { discardSchema } from "../../apps/gateway/src/admin/dead-letters.ts";
import { acknowledgmentQuerySchema } from "../../apps/gateway/src/admin/entries.ts";
import { erasureFormSchema } from "../../apps/gateway/src/admin/erasures.ts";
import { call, FOR_ALL_TOKENS } from "./call.ts";

const idPath = z.object({ ad_response_id: z.guid() });

const detail = acknowledgmentDetailSchema.meta({ id: "Acknowledgment" });
const state = acknowledgmentStateSchema.meta({ id: "AcknowledgmentState" });

/** A call with an id that may be unknown, or in another form. */
const OF_AN_ID = ["unknown_ad_response", "validation_failed"] as const satisfies readonly ErrorCode[];

const acknowledgmentLinks = {
  show: {
    operationId: "getAcknowledgment",
    parameters: { ad_response_id: "$response.body#/acknowledgments/0/ad_response_id" },
  },
  replay: {
    operationId: "replayDeadLetter",
    parameters: { ad_response_id: "$response.body#/acknowledgments/0/ad_response_id" },
  },
};

export const ACKNOWLEDGMENT_PATHS: ZodOpenApiPathsObject = {
  "/acknowledgments": {
    get: call({
      id: "listAcknowledgments",
      tag: "Acknowledgments",
      summary: "A page of acknowledgments in one state, newest first",
      params: { query: acknowledgmentQuerySchema },
      answer: acknowledgmentPageSchema.meta({ id: "AcknowledgmentPage" }),
      links: acknowledgmentLinks,
      codes: ["validation_failed"],
    }),
  },
  "/acknowledgments/{ad_response_id}": {
    get: call({
      id: "getAcknowledgment",
      tag: "Acknowledgments",
      summary: "One acknowledgment with its latest attempts",
      params: { path: idPath },
      answer: detail,
      codes: OF_AN_ID,
      never: FOR_ALL_TOKENS,
    }),
  },
  "/acknowledgments/{ad_response_id}/replay": {
    post: call({
      id: "replayDeadLetter",
      tag: "Dead letters",
      summary: "Put one dead letter back on the queue",
      params: { path: idPath },
      answer: state,
      codes: [...OF_AN_ID, "not_dead"],
    }),
  },
  "/acknowledgments/{ad_response_id}/discard": {
    post: call({
      id: "discardAcknowledgment",
      tag: "Dead letters",
      summary: "End one dead letter or queued acknowledgment for good",
      params: { path: idPath },
      body: discardSchema.meta({ id: "DiscardReason" }),
      examples: { reason: { value: { reason: "The campaign was withdrawn." } } },
      answer: state,
      codes: [...OF_AN_ID, "not_dead", "attempt_under_way"],
    }),
  },
  "/erasures": {
    post: call({
      id: "erase",
      tag: "Privacy",
      summary: "Erase what a user wrote, of one ad response or of a session",
      description: "A session is searched for in steps: repeat it with `next_cursor` until that is null.",
      body: erasureFormSchema.meta({ id: "ErasureRequest" }),
      examples: {
        session: { value: { session_id: "s-1", reason: "Request of the user" } },
        adResponse: {
          value: { ad_response_id: "0b7a52c9-9c0e-4f6e-8d0a-2f6f3f0c7d11", reason: "Request of the user" },
        },
      },
      answer: erasureSchema.meta({ id: "Erasure" }),
      codes: ["unknown_ad_response"],
    }),
  },
};
