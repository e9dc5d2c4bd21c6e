/**
 * The publishers of a process: those that its sources name now. It can be read again while the process runs.
 *
 * 1. A list is taken whole or not at all. A faulty source changes nothing.
 * 2. Who has read a publisher keeps what it has read. So a request ends with the key and the account with which it began.
 */
import type { FieldFault } from "@adrelay/contract";
import type { CallerKey } from "@adrelay/core";
import { listAccounts, type SharedAccount } from "./accounts.ts";
import type { Finding } from "./file-reader.ts";
import {
  loadPublishers,
  type Publisher,
  type PublisherSources,
  type PublishersResult,
} from "./publishers.ts";
import { diffPublishers, isSame, type PublishersDiff } from "./publishers-diff.ts";

/** A caller's key, and whose it is. */
export interface FoundKey {
  readonly publisher: Publisher;
  readonly key: CallerKey;
}

/** What a new look at the sources came to. */
export type ReloadResult =
  | { readonly kind: "reloaded"; readonly diff: PublishersDiff }
  | { readonly kind: "unchanged" }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** A directory, or everything that is wrong with its sources. */
export type OpenedDirectory =
  | { readonly kind: "ok"; readonly directory: PublisherDirectory }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

type Loaded = Extract<PublishersResult, { kind: "ok" }>;

/** Loads the publishers of a process, to be read again later. */
export function openDirectory(sources: PublisherSources): OpenedDirectory {
  const loaded = loadPublishers(sources);
  return loaded.kind === "ok"
    ? { kind: "ok", directory: new PublisherDirectory(loaded, () => loadPublishers(sources)) }
    : loaded;
}

export class PublisherDirectory {
  readonly #load: () => PublishersResult;
  readonly #listeners = new Set<() => void>();
  #index: Index;
  #found: Finding;

  /** @param load looks at the sources again */
  constructor(loaded: Loaded, load: () => PublishersResult) {
    this.#load = load;
    this.#index = indexOf(loaded);
    this.#found = loaded.found;
  }

  /** All publishers, in the order of the file. */
  get current(): readonly Publisher[] {
    return this.#index.publishers;
  }

  /** Their provider accounts. */
  get accounts(): readonly SharedAccount[] {
    return this.#index.accounts;
  }

  /** The beginning of the SHA-256 digest of the file that is in force; undefined without a file. */
  get fileDigest(): string | undefined {
    return this.#index.fileDigest;
  }

  /** What was found in the sources' files at the latest look, also if it was refused. */
  get found(): Finding {
    return this.#found;
  }

  /** A publisher by its id. */
  find(id: string): Publisher | undefined {
    return this.#index.byId.get(id);
  }

  /** The provider account of a publisher. */
  accountOf(id: string): SharedAccount | undefined {
    return this.#index.accountByPublisher.get(id);
  }

  /** A key by its digest, whether it has expired or not. */
  findKey(digest: string): FoundKey | undefined {
    return this.#index.keys.get(digest);
  }

  /** Looks at the sources again, and takes what is there, if it has no fault. */
  reload(): ReloadResult {
    const loaded = this.#load();
    this.#found = loaded.found;
    if (loaded.kind === "faulty") {
      return { kind: "faulty", faults: loaded.faults };
    }
    const diff = diffPublishers(this.current, loaded.publishers);
    const isUnchanged = isSame(diff) && loaded.fileDigest === this.fileDigest;
    this.#index = isUnchanged ? this.#index : indexOf(loaded);
    if (isUnchanged) {
      return { kind: "unchanged" };
    }
    for (const listener of this.#listeners) {
      listener();
    }
    return { kind: "reloaded", diff };
  }

  /** Calls the listener after each change, in the same turn of the event loop. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }
}

interface Index {
  readonly publishers: readonly Publisher[];
  readonly accounts: readonly SharedAccount[];
  readonly fileDigest: string | undefined;
  readonly byId: ReadonlyMap<string, Publisher>;
  readonly accountByPublisher: ReadonlyMap<string, SharedAccount>;
  readonly keys: ReadonlyMap<string, FoundKey>;
}

function indexOf({ publishers, fileDigest }: Loaded): Index {
  const accounts = listAccounts(publishers);
  return {
    publishers,
    accounts,
    fileDigest,
    byId: new Map(publishers.map((publisher) => [publisher.id, publisher])),
    accountByPublisher: new Map(
      accounts.flatMap((account) => account.publishers.map((id) => [id, account] as const)),
    ),
    keys: new Map(
      publishers.flatMap((publisher) =>
        publisher.keys.map((key) => [key.digest, { publisher, key }] as const),
      ),
    ),
  };
}
