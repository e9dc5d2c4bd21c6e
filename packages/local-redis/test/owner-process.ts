import { parseRedisServer, startRedis } from "../src/index.ts";

/** A process that starts a server and tells its port, to be killed by a test. */
const [json = "", dir = ""] = process.argv.slice(2);
const server = parseRedisServer(json);
if (server !== undefined) {
  const { port } = await startRedis({ server, dir });
  process.send?.({ port });
}
