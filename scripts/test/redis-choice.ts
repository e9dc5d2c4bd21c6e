import { describeServer, findRedisServer } from "@adrelay/local-redis";

/** The Redis that a run uses, and the way by which each test worker finds it again. */
export type RedisChoice =
  | { readonly kind: "chosen"; readonly way: string; readonly description: string }
  | { readonly kind: "none"; readonly why: string };

export async function chooseRedis(cacheDir: string, log: (line: string) => void): Promise<RedisChoice> {
  const server = await findRedisServer({ cacheDir, log });
  if (server.kind === "none") {
    return { kind: "none", why: server.tried.map(({ what, why }) => `  ${what}: ${why}`).join("\n") };
  }
  const way = server.kind === "docker" ? "docker" : server.origin;
  // What apt-get has installed is on PATH from now on; asked for by that name, it would be installed again.
  return { kind: "chosen", way: way === "apt" ? "path" : way, description: describeServer(server) };
}
