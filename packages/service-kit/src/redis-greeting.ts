/** What Redis says to a connection that it turns away before it reads anything. */
import { connect } from "node:net";
import type { RedisOptions } from "ioredis";

/** Redis accepts no more connections. The message is Redis' own. */
class ConnectionRefusal extends Error {
  override readonly name = "ConnectionRefusal";
}

const GREETING_TIMEOUT_MS = 300;

/**
 * The refusal of a Redis that accepts no more connections; undefined if it is silent, as one that accepts connections is,
 * or can't be reached. Over TLS it says nothing.
 */
export function loadRefusal({ host, port, path, tls }: RedisOptions): Promise<Error | undefined> {
  if (tls !== undefined) {
    return Promise.resolve(undefined);
  }
  return new Promise((resolve) => {
    const socket = path ? connect(path) : connect(port ?? 6379, host ?? "127.0.0.1");
    const end = (error?: Error) => {
      socket.destroy();
      resolve(error);
    };
    socket.setTimeout(GREETING_TIMEOUT_MS, () => end());
    socket.on("error", () => end()).on("close", () => end());
    socket.once("data", (bytes) => {
      const [, message] = /^-(.*)/.exec(bytes.toString("latin1")) ?? [];
      end(message === undefined ? undefined : new ConnectionRefusal(message));
    });
  });
}
