import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  request as sendRequest,
} from "node:http";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { listenInTest } from "./raw-server.ts";

/** A proxy on loopback that forwards and tunnels. Every host name leads to 127.0.0.1. */
export interface TestProxy {
  readonly port: number;
  /** The first line of each request that it got, such as `CONNECT provider.test:443`. */
  readonly seen: string[];
}

export interface ProxyOptions {
  /** The value of Proxy-Authorization that it asks for; undefined: none. */
  readonly authorization?: string;
  /** What it does with CONNECT in place of a tunnel: answers with this status, or stays silent. */
  readonly connect?: number | "silent";
}

/** Starts a proxy, which is closed at the end of the test. */
export async function startProxy(options: ProxyOptions = {}): Promise<TestProxy> {
  const seen: string[] = [];
  const isAllowed = ({ headers }: IncomingMessage) =>
    options.authorization === undefined || headers["proxy-authorization"] === options.authorization;
  const server: Server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    if (isAllowed(request)) {
      forward(request, response);
    } else {
      response.writeHead(407, { "proxy-authenticate": "Basic" }).end("no");
    }
  });
  server.on("connect", (request: IncomingMessage, socket: Duplex) => {
    seen.push(`CONNECT ${request.url}`);
    socket.on("error", () => {});
    const status = isAllowed(request) ? (options.connect ?? 200) : 407;
    if (status === 200) {
      tunnel(request, socket);
    } else if (status !== "silent") {
      socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`);
    }
  });
  return { port: await listenInTest(server), seen };
}

function forward(request: IncomingMessage, response: ServerResponse): void {
  const { port, pathname } = new URL(request.url ?? "");
  const { "proxy-authorization": _, ...headers } = request.headers;
  const options = { host: "127.0.0.1", port, path: pathname, method: "POST", headers };
  const onward = sendRequest(options, (answer) => {
    response.writeHead(answer.statusCode ?? 0, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => response.writeHead(502).end());
  request.pipe(onward);
}

function tunnel(request: IncomingMessage, socket: Duplex): void {
  const onward = connect(Number(request.url?.split(":").at(-1)), "127.0.0.1", () => {
    socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    socket.pipe(onward).pipe(socket);
  });
  onward.on("error", () => socket.destroy());
  socket.on("close", () => onward.destroy());
}
