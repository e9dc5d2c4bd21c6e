import type { IncomingMessage } from "node:http";
import { stateOfKey } from "@adrelay/core";
import { digestKey, type FoundKey, type Publisher, type PublisherDirectory } from "@adrelay/provider";
import { headerOf } from "@adrelay/service-kit";

/** The publisher who sent a request; undefined for a missing or wrong key. */
export type Authenticate = (request: IncomingMessage) => Publisher | undefined;

export interface AuthenticateDeps {
  readonly publishers: Pick<PublisherDirectory, "findKey">;
  /** Names of the headers that may contain a key, in order. In `Authorization` it may stand behind `Bearer`. */
  readonly headers: readonly string[];
  /** Called with the key of each call that has a valid one. */
  onKeyUse(found: FoundKey): void;
}

/** Many clients can send a key in this header only so. */
const BEARER = /^bearer +/i;

/**
 * A key is looked up by its SHA-256 digest. The time of a look-up may reveal something about digests, but who doesn't know
 * a key can't choose a digest that is close to the key's. From its expiry on, a key is unknown.
 */
export function makeAuthenticate({ publishers, headers, onKeyUse }: AuthenticateDeps): Authenticate {
  const names = headers.map((name) => name.toLowerCase());
  return (request) => {
    const name = names.find((one) => (headerOf(request, one) ?? "") !== "");
    const value = name === undefined ? undefined : headerOf(request, name);
    if (value === undefined) {
      return undefined;
    }
    const key = name === "authorization" ? value.replace(BEARER, "") : value;
    const found = publishers.findKey(digestKey(key));
    if (found === undefined || stateOfKey(found.key, Date.now()) === "expired") {
      return undefined;
    }
    onKeyUse(found);
    return found.publisher;
  };
}
