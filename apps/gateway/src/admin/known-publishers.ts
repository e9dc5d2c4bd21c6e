/** Whether a filter names a publisher that the relay knows: a configured one, or one that the ledger has counts of. */
import type { PublisherId } from "@adrelay/contract";
import type { PublisherDirectory } from "@adrelay/provider";
import { OVERDUE, sendProblem } from "@adrelay/service-kit";
import type { Store } from "@adrelay/store";
import type { Response } from "express";
import { askStore, sendUnavailable } from "../store-answers.ts";

export interface KnownPublishersDeps {
  readonly store: Pick<Store, "snapshot">;
  readonly publishers: PublisherDirectory;
}

/** False if a refusal was sent. A filter that names no publisher is always accepted. */
export type CheckPublisher = (publisher: PublisherId | undefined, response: Response) => Promise<boolean>;

/** A refusal names at most as many. */
const NAMED_MAX = 50;

export function makeCheckPublisher({ store, publishers }: KnownPublishersDeps): CheckPublisher {
  return async (publisher, response) => {
    if (publisher === undefined || publishers.find(publisher) !== undefined) {
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
  };
}

/** The first of these names, and how many more there are. */
export function listNames(names: readonly string[]): string {
  const rest = names.length - NAMED_MAX;
  return names.slice(0, NAMED_MAX).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
