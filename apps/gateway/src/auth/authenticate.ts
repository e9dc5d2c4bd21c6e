import { timingSafeEqual } from "node:crypto";
import { digestKey, type Publisher } from "@adrelay/provider";
import { headerOf } from "@adrelay/service-kit";
import type { Request } from "express";

/** Finds who sent a request; undefined for a missing or wrong key. */
export type Authenticate = (request: Request) => Publisher | undefined;

/**
 * Keys are compared as SHA-256 digests, each in constant time and all of them on every request, so that
 * the time tells nothing of how near a guess is.
 *
 * @param headers names of the headers in which a key is looked for, in order
 */
export function makeAuthenticate(publishers: readonly Publisher[], headers: readonly string[]): Authenticate {
  const names = headers.map((name) => name.toLowerCase());
  return (request) => {
    const key = names
      .map((name) => headerOf(request, name))
      .find((value) => value !== undefined && value !== "");
    if (key === undefined) {
      return undefined;
    }
    const digest = digestKey(key);
    return publishers.filter(({ keyDigests }) => hasDigest(keyDigests, digest))[0];
  };
}

function hasDigest(known: readonly Buffer[], digest: Buffer): boolean {
  return known.filter((candidate) => timingSafeEqual(candidate, digest)).length > 0;
}
