import { connect } from "node:net";

const REPLY_TIMEOUT_MS = 2000;

/** Sends one inline command over a new socket. Resolves to the last line of the reply, which holds the value. */
export function ask(port: number, command: string): Promise<string> {
  return new Promise((done, fail) => {
    const socket = connect({ port, host: "127.0.0.1", timeout: REPLY_TIMEOUT_MS });
    let reply = "";
    // QUIT is answered with +OK, and then the server closes: so the end of the reply is known.
    socket.once("connect", () => socket.write(`${command}\r\nQUIT\r\n`));
    socket.setEncoding("utf8").on("data", (text: string) => {
      reply += text;
    });
    socket.once("end", () => done(reply.split("\r\n").at(-3) ?? ""));
    socket.once("timeout", () => socket.destroy(new TypeError(`no reply to ${command}`)));
    socket.once("error", fail);
  });
}
