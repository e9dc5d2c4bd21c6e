/** POST /admin/v1/publishers/{publisher}/adopt: another publisher takes over what one left that is gone from the settings. */
import { type AdoptionView, LISTED_STATES, type PublisherId, publisherIdSchema } from "@adrelay/contract";
import type { PublisherDirectory } from "@adrelay/provider";
import { OVERDUE, type ReadBody, sendProblem } from "@adrelay/service-kit";
import { type AdoptionPlace, gonePublishers, type Store } from "@adrelay/store";
import type { RequestHandler, Response } from "express";
import type { Logger } from "pino";
import { z } from "zod";
import { askStore, sendUnavailable } from "../store-answers.ts";
import { actorOf, operatorOf } from "./access.ts";
import { cursorSchema, parseForm, readForm } from "./forms.ts";
import { listNames } from "./known-publishers.ts";

export interface AdoptionDeps {
  readonly adoptions: Store["adoptions"];
  readonly snapshot: Store["snapshot"];
  readonly publishers: PublisherDirectory;
  readonly log: Logger;
}

/** Ad responses in a call. It keeps each script at a few milliseconds. */
const BATCH = 100;

const PLACE = new RegExp(`^(${LISTED_STATES.join("|")})(?:\\.(\\d{1,16})\\.([0-9a-f]{32}))?$`);

/** Body of a batch of an adoption. */
export const adoptionFormSchema = z.strictObject({
  to: publisherIdSchema,
  cursor: cursorSchema(PLACE)
    .transform((text): AdoptionPlace => {
      const [, state, timeMs, member] = PLACE.exec(text) ?? [];
      const after = member === undefined ? undefined : { timeMs: Number(timeMs), member };
      return { state: z.enum(LISTED_STATES).parse(state), after };
    })
    .optional(),
});

const fromSchema = z.object({ publisher: publisherIdSchema });

/** Adopts one batch, and answers with the place to go on from. */
export function makeAdoptHandler(deps: AdoptionDeps, readBody: ReadBody): RequestHandler {
  return async (request, response) => {
    const form = await readForm(adoptionFormSchema, readBody, { request, response });
    // Only one refusal can be sent.
    const from = form && parseForm(fromSchema, request.params, response)?.publisher;
    if (form === undefined || from === undefined || refuseParties(deps, { from, to: form.to }, response)) {
      return;
    }
    // A batch that goes on from another one may find that nothing is left.
    if (form.cursor === undefined && !(await checkLeft(deps, from, response))) {
      return;
    }
    const order = { from, to: form.to, by: actorOf(response), place: form.cursor, limit: BATCH };
    const batch = await askStore(deps.adoptions.adoptBatch(order));
    if (batch === OVERDUE) {
      sendUnavailable(response);
      return;
    }
    const { adopted, held, next } = batch;
    if (Object.values(adopted).some((count) => count > 0)) {
      deps.log.info({ event: "adopted", from, to: form.to, by: operatorOf(response), ...adopted });
    }
    const answer: AdoptionView = {
      from,
      to: form.to,
      adopted,
      under_way: held,
      next_cursor: next === undefined ? null : cursorOf(next),
    };
    response.json(answer);
  };
}

interface Parties {
  readonly from: PublisherId;
  readonly to: PublisherId;
}

/** Only what nobody can deliver is given away, and only to somebody who can. True if a refusal was sent. */
function refuseParties({ publishers }: AdoptionDeps, { from, to }: Parties, response: Response): boolean {
  const isConfigured = (id: PublisherId) => publishers.find(id) !== undefined;
  const errors = [
    ...(isConfigured(from)
      ? [{ path: "publisher", message: `${from} is in the settings, so it isn't gone` }]
      : []),
    ...(isConfigured(to) ? [] : [{ path: "to", message: `${to} is no publisher of the settings` }]),
  ];
  if (errors.length > 0) {
    sendProblem(response, "validation_failed", { errors });
  }
  return errors.length > 0;
}

/** False if a refusal was sent: the ledger has never heard of the publisher, so its name is probably misspelt. */
async function checkLeft(
  { snapshot: loadSnapshot, publishers }: AdoptionDeps,
  from: PublisherId,
  response: Response,
): Promise<boolean> {
  const snapshot = await askStore(loadSnapshot());
  if (snapshot === OVERDUE) {
    sendUnavailable(response);
    return false;
  }
  const isKnown = snapshot.states.some(({ publisher }) => publisher === from);
  if (!isKnown) {
    const configured = publishers.current.map(({ id }) => id);
    const gone = gonePublishers(snapshot, configured).map(({ publisher }) => publisher);
    const message = `there has been no such publisher; ${gone.length === 0 ? "none is" : `${listNames(gone)} ${gone.length === 1 ? "is" : "are"}`} gone`;
    sendProblem(response, "validation_failed", { errors: [{ path: "publisher", message }] });
  }
  return isKnown;
}

function cursorOf({ state, after }: AdoptionPlace): string {
  const text = after === undefined ? state : `${state}.${after.timeMs}.${after.member}`;
  return Buffer.from(text, "latin1").toString("base64url");
}
