import type { Socket } from "node:net";

/**
 * Drops the requests that Node finds from now on in what a connection has sent. Without this, Node makes an object of each
 * request in the piece that it parses, up to 64 kB, also if the connection was destroyed meanwhile: thousands of them, and
 * their cleanup takes a fifth of a second.
 *
 * Node has no public way to do so. If its insides change, this does nothing; test/connections.test.ts notices.
 */
export function stopParsing(socket: Socket & { parser?: unknown }): void {
  const { parser } = socket;
  if (typeof parser === "object" && parser !== null && "onIncoming" in parser) {
    parser.onIncoming = dropRequest;
  }
}

/** 0 asks for the request's body, which nobody reads. */
const dropRequest = () => 0;
