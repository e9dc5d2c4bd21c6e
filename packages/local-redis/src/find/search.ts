import type { RedisServer } from "../redis-server.ts";

/** What one way of finding a server came to. */
export type Attempt =
  | { readonly kind: "found"; readonly server: RedisServer }
  | { readonly kind: "not_here"; readonly why: string };

export interface SearchContext {
  readonly cacheDir: string;
  readonly log: (line: string) => void;
  readonly env: NodeJS.ProcessEnv;
}
