import { connect, createServer, type Socket } from "node:net";

/** A TCP proxy on loopback that can cut its connections and delay or drop the bytes that pass. */
export interface SocketProxy {
  readonly port: number;
  /** Sets the port that new connections go to. */
  setTarget(port: number): void;
  /** Delays every reply of the target by this time, on all connections. */
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

/** What all links of a proxy share. */
interface Wire {
  readonly links: Set<Link>;
  targetPort: number;
  replyDelayMs: number;
}

/** Starts a proxy to a port of 127.0.0.1. */
export async function startSocketProxy(targetPort: number): Promise<SocketProxy> {
  const wire: Wire = { links: new Set(), targetPort, replyDelayMs: 0 };
  const proxy = createServer((client) => openLink(wire, client));
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address();
  const cut = () => {
    for (const { client, server } of wire.links) {
      client.destroy();
      server.destroy();
    }
  };
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    setTarget: (port) => {
      wire.targetPort = port;
    },
    setReplyDelay: (delayMs) => {
      wire.replyDelayMs = delayMs;
    },
    cut,
    swallow: () => {
      for (const link of wire.links) {
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

function openLink(wire: Wire, client: Socket): void {
  const server = connect(wire.targetPort, "127.0.0.1");
  const link: Link = { client, server, isSwallowed: false, delayed: [], lastDueMs: 0 };
  wire.links.add(link);
  client.on("data", (bytes) => {
    if (!link.isSwallowed) {
      server.write(bytes);
    }
  });
  server.on("data", (bytes) => passLater(link, bytes, wire.replyDelayMs));
  const end = () => {
    wire.links.delete(link);
    client.destroy();
    server.destroy();
  };
  for (const socket of [client, server]) {
    socket.on("error", end);
    socket.on("close", end);
  }
}

function passLater(link: Link, bytes: Buffer, delayMs: number): void {
  const nowMs = performance.now();
  link.delayed.push(bytes);
  link.lastDueMs = Math.max(link.lastDueMs, nowMs + delayMs);
  if (delayMs > 0 || link.delayed.length > 1) {
    setTimeout(passFirst, link.lastDueMs - nowMs, link);
  } else {
    passFirst(link);
  }
}

function passFirst({ client, delayed, isSwallowed }: Link): void {
  const bytes = delayed.shift();
  if (bytes !== undefined && !isSwallowed && !client.destroyed) {
    client.write(bytes);
  }
}
