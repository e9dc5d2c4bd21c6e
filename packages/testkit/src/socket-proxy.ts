import { connect, createServer, type Socket } from "node:net";

/** A TCP proxy on loopback that can cut its connections and delay or drop the bytes that pass. */
export interface SocketProxy {
  readonly port: number;
  /** Sets the port that new connections go to. */
  setTarget(port: number): void;
  /** Delays every reply of the target by so much, on all connections. */
  setReplyDelay(delayMs: number): void;
  /** Closes all connections, like a restart of the target's host. */
  cut(): void;
  /** Drops all bytes on the present connections from now on. New connections work. */
  swallow(): void;
  close(): Promise<void>;
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  isSwallowed: boolean;
  /** Delayed replies in their order. A reply never overtakes an earlier one, in whatever order the timers fire. */
  readonly delayed: Buffer[];
  /** When the last delayed reply is due. */
  lastDueMs: number;
}

function passFirst({ client, delayed, isSwallowed }: Link): void {
  const bytes = delayed.shift();
  if (bytes !== undefined && !isSwallowed && !client.destroyed) {
    client.write(bytes);
  }
}

export async function startSocketProxy(targetPort: number): Promise<SocketProxy> {
  const links = new Set<Link>();
  let target = targetPort;
  let replyDelayMs = 0;
  const proxy = createServer((client) => {
    const server = connect(target, "127.0.0.1");
    const link: Link = { client, server, isSwallowed: false, delayed: [], lastDueMs: 0 };
    links.add(link);
    client.on("data", (bytes) => {
      if (!link.isSwallowed) {
        link.server.write(bytes);
      }
    });
    link.server.on("data", (bytes) => {
      const nowMs = performance.now();
      link.delayed.push(bytes);
      link.lastDueMs = Math.max(link.lastDueMs, nowMs + replyDelayMs);
      if (replyDelayMs > 0 || link.delayed.length > 1) {
        setTimeout(passFirst, link.lastDueMs - nowMs, link);
      } else {
        passFirst(link);
      }
    });
    const end = () => {
      links.delete(link);
      client.destroy();
      link.server.destroy();
    };
    for (const socket of [client, link.server]) {
      socket.on("error", end);
      socket.on("close", end);
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address();
  const cut = () => {
    for (const { client, server } of links) {
      client.destroy();
      server.destroy();
    }
  };
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    setTarget: (port) => {
      target = port;
    },
    setReplyDelay: (delayMs) => {
      replyDelayMs = delayMs;
    },
    cut,
    swallow: () => {
      for (const link of links) {
        link.isSwallowed = true;
      }
    },
    close: () =>
      new Promise((resolve) => {
        proxy.close(() => resolve());
        cut();
      }),
  };
}
