import { connect } from "node:net";

/** What answers on a port. */
export type Probe =
  | { readonly kind: "silent" }
  | {
      readonly kind: "redis";
      readonly isLoading: boolean;
      readonly processId: number;
      /** New with every start of a server: tells one run from another. */
      readonly runId: string;
    };

const TIMEOUT_MS = 500;
/** INFO of the two sections is about 2 KB; what says more than this is no Redis. */
const REPLY_CHARS_MAX = 32 * 1024;

/**
 * Asks whoever listens on a port of 127.0.0.1 who it is. INFO rather than PING: it tells which process
 * answers, so that another server on the same port isn't taken for ours, and it answers while data load.
 */
export function probeRedis(port: number): Promise<Probe> {
  return new Promise((done) => {
    let reply = "";
    const socket = connect({ port, host: "127.0.0.1", timeout: TIMEOUT_MS });
    const end = (probe: Probe) => {
      socket.destroy();
      done(probe);
    };
    socket.once("connect", () => socket.write("INFO server\r\nINFO persistence\r\n"));
    socket.setEncoding("utf8").on("data", (text: string) => {
      reply += text;
      const probe = parseInfo(reply);
      if (probe.kind === "redis" || reply.length > REPLY_CHARS_MAX) {
        end(probe);
      }
    });
    for (const event of ["timeout", "error", "close"]) {
      socket.once(event, () => end({ kind: "silent" }));
    }
  });
}

function parseInfo(reply: string): Probe {
  const processId = /\nprocess_id:(\d+)\r/.exec(reply)?.[1];
  const runId = /\nrun_id:(\w+)\r/.exec(reply)?.[1];
  const loading = /\nloading:(\d)\r/.exec(reply)?.[1];
  if (processId === undefined || runId === undefined || loading === undefined) {
    return { kind: "silent" };
  }
  return { kind: "redis", isLoading: loading === "1", processId: Number(processId), runId };
}
