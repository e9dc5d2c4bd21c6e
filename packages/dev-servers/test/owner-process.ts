import { type RedisServer, startRedis } from "../src/index.ts";

/** A process that starts a server and sends its port to the test, which kills this process. */
const [kind, place = "", dir = ""] = process.argv.slice(2);
const server: RedisServer =
  kind === "docker" ? { kind, image: place } : { kind: "binary", path: place, origin: "path" };
const { port } = await startRedis({ server, dir });
process.send?.({ port });
