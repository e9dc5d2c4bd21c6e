/** GET /admin/v1/publishers: the publishers that are in force, with their keys. No answer contains a key or a digest. */
import type { PublishersView } from "@adrelay/contract";
import { stateOfKey } from "@adrelay/core";
import type { Publisher, PublisherDirectory } from "@adrelay/provider";
import type { PublishersWatch } from "@adrelay/relay-kit";
import { OVERDUE } from "@adrelay/service-kit";
import type { Store } from "@adrelay/store";
import type { RequestHandler } from "express";
import { askStore, isoTime, sendUnavailable } from "../store-answers.ts";
import { maySee } from "./access.ts";

export interface PublishersDeps {
  readonly publishers: PublisherDirectory;
  readonly publishersWatch: Pick<PublishersWatch, "state">;
  readonly keyUses: Pick<Store["keyUses"], "load">;
}

type UseOf = Awaited<ReturnType<PublishersDeps["keyUses"]["load"]>>;

export function makePublishersHandler(deps: PublishersDeps): RequestHandler {
  return async (_request, response) => {
    const useOf = await askStore(deps.keyUses.load());
    if (useOf === OVERDUE) {
      sendUnavailable(response);
    } else {
      response.json(viewOfAll(deps, useOf, (id) => maySee(response, id)));
    }
  };
}

/** An account has the name of its first publisher, which may be another operator's. */
function viewOfAll(
  { publishers, publishersWatch }: PublishersDeps,
  useOf: UseOf,
  isSeen: (publisher: string) => boolean,
): PublishersView {
  const { digest, isValid, loadedAtMs } = publishersWatch.state;
  return {
    file: digest === undefined ? null : { digest, valid: isValid, loaded_at: isoTime(loadedAtMs) },
    publishers: publishers.current
      .filter(({ id }) => isSeen(id))
      .map((publisher) => {
        const account = publishers.accountOf(publisher.id)?.name ?? "";
        return viewOfOne(publisher, isSeen(account) ? account : publisher.id, useOf);
      }),
  };
}

function viewOfOne(
  { id, name, keys }: Publisher,
  provider: string,
  useOf: UseOf,
): PublishersView["publishers"][number] {
  const time = (ms: number | undefined) => (ms === undefined ? null : isoTime(ms));
  return {
    id,
    name,
    provider,
    keys: keys.map((key) => ({
      id: key.id,
      state: stateOfKey(key, Date.now()),
      created: time(key.createdAtMs),
      expires: time(key.expiresAtMs),
      last_used: time(useOf(key)),
    })),
  };
}
