/** A scheme and a host before the path, as proxies send it (RFC 9112, section 3.2.2). */
const ORIGIN = /^https?:\/\/[^/?#]*/i;
/** Slashes that follow one another, also with a dot between them. */
const REPEATED_SLASHES = /\/(?:\.?\/)+/g;

/**
 * The path and query that a request means. Edges and callers that join a base URL and a path write `//api/start/` or
 * `/./api/start/`, and some send a whole URL. Nothing else is changed: not `..`, escapes or upper case, because an edge may
 * decide by these who may call what.
 */
export function normalizeTarget(target: string): string {
  if (isPlain(target)) {
    return target;
  }
  const relative = target.replace(ORIGIN, "");
  const queryAt = relative.indexOf("?");
  const path = queryAt === -1 ? relative : relative.slice(0, queryAt);
  const query = queryAt === -1 ? "" : relative.slice(queryAt);
  const plain = path.replaceAll(REPEATED_SLASHES, "/").replace(/\/\.$/, "/");
  return (plain === "" ? "/" : plain) + query;
}

/** Whether a target surely needs no change, as almost all do. */
function isPlain(target: string): boolean {
  return target.startsWith("/") && !target.includes("//") && !target.includes("/.");
}
