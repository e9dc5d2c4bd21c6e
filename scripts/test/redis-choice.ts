import { describeServer, findRedisServer } from "@adrelay/local-redis";
import { chooseTestRedis } from "@adrelay/testkit";

/** The Redis that a run uses, and the way by which each test worker finds it again. */
export type RedisChoice =
  | { readonly kind: "chosen"; readonly way: string; readonly description: string }
  | { readonly kind: "none"; readonly why: string };

/** Finds a Redis and fixes it for this process and those that it starts; false, and says so, if there is none. */
export async function provideRedis(cacheDir: string, say: (line: string) => void): Promise<boolean> {
  const choice = await chooseRedis(cacheDir, say);
  if (choice.kind === "none") {
    say(`Redis: none was found, and none could be fetched\n${choice.why}`);
    return false;
  }
  // Asked before the way is fixed below: a fixed way means a local server.
  const kind = await chooseTestRedis(process.env);
  say(`Redis: ${kind === "docker" ? "containers, since Docker runs" : choice.description}`);
  // Whoever starts one finds the same at once.
  process.env["ADRELAY_TEST_REDIS"] = kind;
  process.env["ADRELAY_REDIS_SERVER"] = choice.way;
  return true;
}

async function chooseRedis(cacheDir: string, log: (line: string) => void): Promise<RedisChoice> {
  const server = await findRedisServer({ cacheDir, log });
  if (server.kind === "none") {
    return { kind: "none", why: server.tried.map(({ what, why }) => `  ${what}: ${why}`).join("\n") };
  }
  const way = server.kind === "docker" ? "docker" : server.origin;
  // What apt-get has installed is on PATH from now on; asked for by that name, it would be installed again.
  return { kind: "chosen", way: way === "apt" ? "path" : way, description: describeServer(server) };
}
