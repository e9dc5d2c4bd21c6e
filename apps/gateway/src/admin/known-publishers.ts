/** Whose entries a filter covers: those of a publisher that the relay knows, and that the operator may see. */
import type { PublisherId } from "@adrelay/contract";
import type { PublisherDirectory } from "@adrelay/provider";
import { OVERDUE, sendProblem } from "@adrelay/service-kit";
import type { Store } from "@adrelay/store";
import type { Response } from "express";
import { askStore, sendUnavailable } from "../store-answers.ts";
import { ownPublishers } from "./access.ts";

export interface KnownPublishersDeps {
  readonly store: Pick<Store, "snapshot">;
  readonly publishers: PublisherDirectory;
}

/** Whose entries a filter covers; undefined for all. */
interface ChosenPublisher {
  readonly publisher: PublisherId | undefined;
}

/**
 * Whose entries a call is about, by the publisher that its filter names. An operator of one publisher needn't name it.
 * Undefined if a refusal was sent.
 */
export type ChoosePublisher = (
  named: PublisherId | undefined,
  response: Response,
) => Promise<ChosenPublisher | undefined>;

/** A refusal names at most as many. */
const NAMED_MAX = 50;

export function makeChoosePublisher(deps: KnownPublishersDeps): ChoosePublisher {
  return async (named, response) => {
    const own = ownPublishers(response);
    if (own !== undefined) {
      return chooseOwn(own, named, response);
    }
    const isKnown = named === undefined || (await checkKnown(deps, named, response));
    return isKnown ? { publisher: named } : undefined;
  };
}

function chooseOwn(
  own: readonly PublisherId[],
  named: PublisherId | undefined,
  response: Response,
): ChosenPublisher | undefined {
  const publisher = named ?? (own.length === 1 ? own[0] : undefined);
  if (publisher === undefined) {
    const message = `is missing: your token is limited to ${listNames(own)}`;
    sendProblem(response, "validation_failed", { errors: [{ path: "publisher", message }] });
    return undefined;
  }
  if (!own.includes(publisher)) {
    sendProblem(response, "forbidden", { detail: `your token is limited to ${listNames(own)}` });
    return undefined;
  }
  return { publisher };
}

/** False if a refusal was sent: neither the settings nor the ledger have such a publisher. */
async function checkKnown(
  { store, publishers }: KnownPublishersDeps,
  publisher: PublisherId,
  response: Response,
): Promise<boolean> {
  if (publishers.find(publisher) !== undefined) {
    return true;
  }
  const snapshot = await askStore(store.snapshot());
  if (snapshot === OVERDUE) {
    sendUnavailable(response);
    return false;
  }
  const known = new Set<string>([
    ...publishers.current.map(({ id }) => id),
    ...snapshot.states.map((counts) => counts.publisher),
  ]);
  if (!known.has(publisher)) {
    const message = `there is no such publisher; known: ${listNames([...known].toSorted())}`;
    sendProblem(response, "validation_failed", { errors: [{ path: "publisher", message }] });
  }
  return known.has(publisher);
}

/** The first of these names, and how many more there are. */
export function listNames(names: readonly string[]): string {
  const rest = names.length - NAMED_MAX;
  return names.slice(0, NAMED_MAX).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
