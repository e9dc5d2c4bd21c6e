/**
 * A publisher that takes all it can from a gateway. It runs as a separate process, so what it costs isn't counted in what
 * another publisher's callers see. It sends so many requests in so much time, each on a connection of its own.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { ACKNOWLEDGE_PATH, ACKNOWLEDGMENTS_PATH, API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import { type AbusePlan, abusePlanSchema } from "./abuse-plan.ts";
import { acknowledgmentBody, benchId, freshPrefix } from "./load.ts";

const MEGABYTE = 1_000_000;
/** How much of a stopped upload is sent. */
const SENT_BYTES = 100_000;
const INJECTION = Buffer.from(JSON.stringify({ prompt: "x".repeat(MEGABYTE) }));
const TEXT = "x".repeat(MEGABYTE);
const PREFIX = freshPrefix();

/** What one request of an abuse consists of. */
interface Sent {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: string;
  readonly body: Buffer;
  readonly sentBytes: number;
}

function sentOf(abuse: AbusePlan["abuse"], n: number): Sent {
  const id = benchId(PREFIX, n);
  const post = { method: "POST", path: INJECTION_PATH, headers: "" } as const;
  switch (abuse) {
    case "long injections":
      return { ...post, body: INJECTION, sentBytes: INJECTION.length };
    case "stopped uploads":
      return { ...post, body: INJECTION, sentBytes: SENT_BYTES };
    case "waiting acknowledgments": {
      const body = Buffer.from(acknowledgmentBody(id, TEXT));
      return {
        ...post,
        path: ACKNOWLEDGE_PATH,
        headers: "Prefer: wait=30\r\n",
        body,
        sentBytes: body.length,
      };
    }
    case "small requests":
      return {
        method: "GET",
        path: `${ACKNOWLEDGMENTS_PATH}${id}/`,
        headers: "",
        body: Buffer.alloc(0),
        sentBytes: 0,
      };
    default:
      return abuse satisfies never;
  }
}

process.on("message", (message) => {
  const plan = abusePlanSchema.parse(message);
  void abuse(plan).then((answers) => process.send?.({ kind: "abused", answers }));
});
process.on("disconnect", () => process.exit(0));
process.send?.({ kind: "ready" });

/** Resolves to how many answers there were of each status. Connections without an answer are closed in the end. */
async function abuse(plan: AbusePlan): Promise<Record<string, number>> {
  const startedAtMs = performance.now();
  const sockets = new Set<Socket>();
  const answers: Record<string, number> = {};
  for (let n = 0; n < plan.count; n += 1) {
    await pause(Math.max(0, startedAtMs + (n * plan.durationMs) / plan.count - performance.now()));
    const socket = open(plan, sentOf(plan.abuse, n));
    sockets.add(socket.once("close", () => sockets.delete(socket)));
    socket.once("data", (bytes) => {
      const [, status = "none"] = /^HTTP\/1.1 (\d+)/.exec(bytes.toString("latin1")) ?? [];
      answers[status] = (answers[status] ?? 0) + 1;
      // What was refused is read to its end by the gateway, and then its caller goes.
      socket.end();
    });
  }
  await pause(Math.max(0, startedAtMs + plan.durationMs - performance.now()));
  await Promise.all([...sockets].map((socket) => once(socket.destroy(), "close")));
  return answers;
}

function open({ origin, key }: AbusePlan, { method, path, headers, body, sentBytes }: Sent): Socket {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname).on("error", () => {});
  socket.write(
    `${method} ${path} HTTP/1.1\r\nHost: gateway\r\n${API_KEY_HEADER}: ${key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n${headers}\r\n`,
  );
  socket.write(body.subarray(0, sentBytes));
  return socket;
}
