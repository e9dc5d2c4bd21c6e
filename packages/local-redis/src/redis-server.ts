/** A way to run a Redis server on this machine. */
export type RedisServer =
  | { readonly kind: "binary"; readonly path: string; readonly origin: "path" | "embedded" | "apt" }
  | { readonly kind: "docker"; readonly image: string };

/** How a server is called in messages to people. */
export function describeServer(server: RedisServer): string {
  if (server.kind === "docker") {
    return `${server.image} in Docker`;
  }
  const origins = { path: "on PATH", embedded: "the embedded Valkey", apt: "installed with apt-get" };
  return `${server.path} (${origins[server.origin]})`;
}

/**
 * Reads a server back from its JSON: one process finds it, and hands the choice on to others through the
 * environment. Undefined if the text is no such thing.
 */
export function parseRedisServer(json: string): RedisServer | undefined {
  const value = parseObject(json);
  if (value["kind"] === "docker" && typeof value["image"] === "string") {
    return { kind: "docker", image: value["image"] };
  }
  const { path, origin } = value;
  const isBinary = value["kind"] === "binary" && typeof path === "string";
  if (isBinary && (origin === "path" || origin === "embedded" || origin === "apt")) {
    return { kind: "binary", path, origin };
  }
  return undefined;
}

function parseObject(json: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
