import type { EventEmitter } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A TCP server whose connections are handled by hand. It is closed at the end of the test. */
export function startRawServer(onConnection: (socket: Socket) => void): Promise<number> {
  return listenInTest(createServer(onConnection));
}

/** Lets a server listen on a free port of 127.0.0.1 until the test ends, and closes all its connections then. */
export async function listenInTest(server: Server & EventEmitter): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket.on("error", () => {}));
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) {
      socket.destroy();
    }
    server.close();
  });
  return Object(server.address()).port;
}
