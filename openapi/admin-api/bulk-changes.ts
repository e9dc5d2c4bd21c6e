/** Calls about bulk replays and bulk discards. */
import {
  discardListSchema,
  discardViewSchema,
  dryRunSchema,
  replayListSchema,
  replayViewSchema,
} from "@adrelay/contract";
import { z } from "zod";
import type { ZodOpenApiPathsObject } from "zod-openapi";
import { discardOrderSchema } from "../../apps/gateway/src/admin/bulk-discards.ts";
import { replayOrderSchema } from "../../apps/gateway/src/admin/bulk-replays.ts";
import { call, FOR_ALL_TOKENS } from "./call.ts";

const dryRun = dryRunSchema.meta({ id: "DryRun" });

/** What differs between bulk replays and bulk discards. */
interface BulkCalls {
  readonly noun: "replay" | "discard";
  readonly name: "Replay" | "Discard";
  readonly list: z.ZodType;
  readonly view: z.ZodType;
  /** Of the call that starts one. */
  readonly start: Pick<Parameters<typeof call>[0], "summary" | "description" | "body" | "examples">;
}

/** The calls that start, list, show and cancel bulk changes of one kind. */
function bulkPaths({ noun, name, list, view, start }: BulkCalls): ZodOpenApiPathsObject {
  const tag = "Dead letters";
  const idName = `${noun}_id`;
  const params = { path: z.object({ [idName]: z.guid() }) };
  const ofStarted = { parameters: { [idName]: `$response.body#/${idName}` } };
  const links = {
    show: { operationId: `get${name}`, ...ofStarted },
    cancel: { operationId: `cancel${name}`, ...ofStarted },
  };
  const listed = { id: `list${name}s`, tag, summary: `The latest bulk ${noun}s`, answer: list };
  const shown = { id: `get${name}`, tag, summary: `The progress of one bulk ${noun}`, params, answer: view };
  const cancelled = { id: `cancel${name}`, tag, summary: `Cancel one bulk ${noun}`, params, answer: view };
  return {
    [`/${noun}s`]: {
      get: call({ ...listed, never: FOR_ALL_TOKENS }),
      post: call({ id: `start${name}`, tag, ...start, answer: dryRun, started: view, links }),
    },
    [`/${noun}s/{${idName}}`]: {
      get: call({ ...shown, codes: [`unknown_${noun}`], never: FOR_ALL_TOKENS }),
    },
    [`/${noun}s/{${idName}}/cancel`]: {
      post: call({ ...cancelled, codes: [`unknown_${noun}`, `${noun}_ended`] }),
    },
  };
}

const dryRunExample = { summary: "How many would it be?", value: { reason: "exhausted", dry_run: true } };

export const BULK_PATHS: ZodOpenApiPathsObject = {
  ...bulkPaths({
    noun: "replay",
    name: "Replay",
    list: replayListSchema.meta({ id: "ReplayList" }),
    view: replayViewSchema.meta({ id: "Replay" }),
    start: {
      summary: "Put all dead letters of a filter back on the queue",
      body: replayOrderSchema.meta({ id: "ReplayRequest" }),
      examples: {
        dryRun: dryRunExample,
        start: { value: { reason: "exhausted", rate_per_second: 100 } },
      },
    },
  }),
  ...bulkPaths({
    noun: "discard",
    name: "Discard",
    list: discardListSchema.meta({ id: "DiscardList" }),
    view: discardViewSchema.meta({ id: "Discard" }),
    start: {
      summary: "End all dead letters, or all queued acknowledgments, of a filter for good",
      description: "`why` may be missing only in a dry run. `reason` and `code` are for dead letters only.",
      body: discardOrderSchema.meta({ id: "DiscardRequest" }),
      examples: {
        dryRun: dryRunExample,
        start: { value: { reason: "exhausted", why: "The campaign was withdrawn." } },
        queued: { value: { of: "queued", unknown: true, why: "Invented ids" } },
      },
    },
  }),
};
