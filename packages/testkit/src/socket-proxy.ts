import { connect, createServer, type Socket } from "node:net";

/** A TCP proxy of a test's own, on loopback, that can cut, delay and swallow what passes through it. */
export interface SocketProxy {
  readonly port: number;
  /** Where new connections go from now on. */
  setTarget(port: number): void;
  /** What comes back from the target takes this much longer, on every connection. */
  setReplyDelay(delayMs: number): void;
  /** Closes all connections, as a restart of the target's host does. */
  cut(): void;
  /** Lets nothing through any more on the connections that there are; new ones work. */
  swallow(): void;
  close(): Promise<void>;
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  isSwallowed: boolean;
  /** When the last reply is due: the next one must not overtake it. */
  lastDueMs: number;
}

export async function startSocketProxy(targetPort: number): Promise<SocketProxy> {
  const links = new Set<Link>();
  let target = targetPort;
  let replyDelayMs = 0;
  const proxy = createServer((client) => {
    const link: Link = { client, server: connect(target, "127.0.0.1"), isSwallowed: false, lastDueMs: 0 };
    links.add(link);
    client.on("data", (bytes) => {
      if (!link.isSwallowed) {
        link.server.write(bytes);
      }
    });
    link.server.on("data", (bytes) => {
      const pass = () => void (link.isSwallowed || client.destroyed || client.write(bytes));
      const nowMs = performance.now();
      link.lastDueMs = Math.max(link.lastDueMs, nowMs + replyDelayMs);
      if (link.lastDueMs > nowMs) {
        setTimeout(pass, link.lastDueMs - nowMs);
      } else {
        pass();
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
