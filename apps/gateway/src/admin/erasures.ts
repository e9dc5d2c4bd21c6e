/**
 * POST /admin/v1/erasures: what a user wrote leaves Redis, of one ad response or of all of a session. Entries and counts stay.
 *
 * A session is searched for in steps, one a call, because nothing indexes it. Each answer says where to go on.
 */
import {
  type AdResponseId,
  adResponseIdSchema,
  type ErasureView,
  type PublisherId,
  publisherIdSchema,
} from "@adrelay/contract";
import type { PublisherDirectory } from "@adrelay/provider";
import type { SessionHashes } from "@adrelay/relay-kit";
import { OVERDUE, type ReadBody, sendProblem } from "@adrelay/service-kit";
import { ERASURE_PLACE, type Store } from "@adrelay/store";
import type { RequestHandler, Response } from "express";
import type { Logger } from "pino";
import { z } from "zod";
import { askStore, sendUnavailable } from "../store-answers.ts";
import { actorOf, maySeeId, operatorOf } from "./access.ts";
import { cursorSchema, discardReasonSchema, readForm } from "./forms.ts";
import type { ChoosePublisher } from "./known-publishers.ts";

export interface ErasureDeps {
  readonly acknowledgments: Pick<Store["acknowledgments"], "find">;
  readonly erasures: Store["erasures"];
  readonly rewrites: Pick<Store["rewrites"], "request">;
  readonly sessionHashes: SessionHashes;
  readonly publishers: PublisherDirectory;
  readonly log: Logger;
}

const SESSION_CHARS_MAX = 1024;

/** Body of an erasure. */
export const erasureFormSchema = z
  .strictObject({
    ad_response_id: adResponseIdSchema.optional(),
    session_id: z.string().min(1, "must not be empty").max(SESSION_CHARS_MAX).optional(),
    publisher: publisherIdSchema.optional(),
    reason: discardReasonSchema,
    cursor: cursorSchema(ERASURE_PLACE).optional(),
    rewrite: z.boolean().default(false),
  })
  .refine((form) => (form.ad_response_id === undefined) !== (form.session_id === undefined), {
    path: ["ad_response_id"],
    error: "give either ad_response_id or session_id",
  })
  .refine((form) => form.session_id !== undefined || (form.publisher ?? form.cursor) === undefined, {
    path: ["session_id"],
    error: "is missing: publisher and cursor belong to it",
  });
type Form = z.infer<typeof erasureFormSchema>;

export interface ErasureParts {
  readonly choosePublisher: ChoosePublisher;
  readonly readBody: ReadBody;
}

export function makeEraseHandler(
  deps: ErasureDeps,
  { choosePublisher, readBody }: ErasureParts,
): RequestHandler {
  return async (request, response) => {
    const form = await readForm(erasureFormSchema, readBody, { request, response });
    if (form === undefined) {
      return;
    }
    const { ad_response_id: id, session_id: sessionId = "" } = form;
    const view =
      id === undefined
        ? await eraseChosen(deps, choosePublisher, { form: { ...form, sessionId }, response })
        : await eraseOne(deps, { ...form, id }, response);
    if (view === undefined) {
      return;
    }
    // The texts that this erasure found have left Redis now, so a rewrite that starts from here on leaves none on disk.
    const order = { by: actorOf(response), reason: form.reason };
    const isWanted = form.rewrite && view.next_cursor === null;
    if (isWanted && (await askStore(deps.rewrites.request(order))) === OVERDUE) {
      sendUnavailable(response);
      return;
    }
    response.json(view);
  };
}

/** Undefined if a refusal was sent, as of the next function. */
async function eraseOne(
  { acknowledgments, erasures, log }: ErasureDeps,
  { id, reason }: Form & { readonly id: AdResponseId },
  response: Response,
): Promise<ErasureView | undefined> {
  const erase = async () =>
    (await maySeeId(acknowledgments, id, response))
      ? await erasures.erase(id, { by: actorOf(response), reason })
      : ({ kind: "unknown" } as const);
  const result = await askStore(erase());
  if (result === OVERDUE) {
    sendUnavailable(response);
    return undefined;
  }
  if (result.kind === "unknown") {
    sendProblem(response, "unknown_ad_response");
    return undefined;
  }
  const { kind, state, isUnderWay } = result;
  log.info({ event: "erased", ad_response_id: id, by: operatorOf(response), state, under_way: isUnderWay });
  return {
    erased: kind === "erased" ? 1 : 0,
    without_text: kind === "no_text" ? 1 : 0,
    under_way: isUnderWay ? 1 : 0,
    state,
    next_cursor: null,
  };
}

type SessionForm = Form & { readonly sessionId: string };

/** Erases a session of the publisher that the operator named, or may see. */
async function eraseChosen(
  deps: ErasureDeps,
  choosePublisher: ChoosePublisher,
  { form, response }: { readonly form: SessionForm; readonly response: Response },
): Promise<ErasureView | undefined> {
  const chosen = await choosePublisher(form.publisher, response);
  return chosen === undefined ? undefined : await eraseSession(deps, { ...form, ...chosen }, response);
}

async function eraseSession(
  deps: ErasureDeps,
  { sessionId, reason, cursor, ...form }: SessionForm,
  response: Response,
): Promise<ErasureView | undefined> {
  const { erasures, sessionHashes, log } = deps;
  const publisher = form.publisher ?? onlyPublisher(deps);
  if (!sessionHashes.isOn || publisher === undefined) {
    const fault = sessionHashes.isOn
      ? { path: "publisher", message: "is missing: sessions of several publishers may have the same id" }
      : { path: "session_id", message: "can't be found: the gateway has no SESSION_HASH_KEYS" };
    sendProblem(response, "validation_failed", { errors: [fault] });
    return undefined;
  }
  const order = {
    by: actorOf(response),
    reason,
    publisher,
    hashes: sessionHashes.all(sessionId),
    place: cursor,
  };
  const batch = await askStore(erasures.eraseSession(order));
  if (batch === OVERDUE) {
    sendUnavailable(response);
    return undefined;
  }
  const { erased, withoutText: without_text, underWay: under_way, next } = batch;
  if (erased + without_text > 0) {
    log.info({
      event: "session_erased",
      publisher,
      by: operatorOf(response),
      erased,
      without_text,
      under_way,
    });
  }
  const next_cursor = next === undefined ? null : Buffer.from(next, "latin1").toString("base64url");
  return { erased, without_text, under_way, state: null, next_cursor };
}

function onlyPublisher({ publishers }: ErasureDeps): PublisherId | undefined {
  const [first, ...others] = publishers.current;
  return others.length === 0 ? first?.id : undefined;
}
