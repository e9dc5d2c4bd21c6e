import { accountIdOf } from "./accounts.ts";
import type { Publisher } from "./publishers.ts";

/** What differs between two lists of publishers. Keys are named `publisher/key`. Nothing of it is secret. */
export interface PublishersDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Publishers of which more than the keys differs. */
  readonly changed: readonly string[];
  readonly keysAdded: readonly string[];
  readonly keysRemoved: readonly string[];
  /** Keys with the same id, of which something else differs. */
  readonly keysChanged: readonly string[];
}

/** Compares two lists of publishers. */
export function diffPublishers(before: readonly Publisher[], after: readonly Publisher[]): PublishersDiff {
  const own = compare(textsOf(before, publisherText), textsOf(after, publisherText));
  const keys = compare(keyTexts(before), keyTexts(after));
  return {
    added: own.added,
    removed: own.removed,
    changed: own.changed,
    keysAdded: keys.added,
    keysRemoved: keys.removed,
    keysChanged: keys.changed,
  };
}

/** Whether nothing differs. */
export function isSame(diff: PublishersDiff): boolean {
  return Object.values(diff).every((names: readonly string[]) => names.length === 0);
}

/** All of a publisher but its keys, as a text to compare. */
function publisherText({ keys: _, account, ...rest }: Publisher): string {
  return JSON.stringify([rest, accountIdOf(account), account.tls?.contentDigest]);
}

function textsOf(
  publishers: readonly Publisher[],
  textOf: (publisher: Publisher) => string,
): Map<string, string> {
  return new Map(publishers.map((publisher) => [publisher.id, textOf(publisher)]));
}

function keyTexts(publishers: readonly Publisher[]): ReadonlyMap<string, string> {
  const entries = publishers.flatMap(({ id, keys }) =>
    keys.map((key) => [`${id}/${key.id}`, JSON.stringify(key)] as const),
  );
  return new Map(entries);
}

function compare(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>) {
  return {
    added: [...after.keys()].filter((name) => !before.has(name)),
    removed: [...before.keys()].filter((name) => !after.has(name)),
    changed: [...after].flatMap(([name, text]) => {
      const was = before.get(name);
      return was === undefined || was === text ? [] : [name];
    }),
  };
}
