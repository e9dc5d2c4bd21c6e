/**
 * An ad service that answers immediately, as a separate process. It fills every injection and accepts every
 * acknowledgment. It sends a message when the number of received acknowledgments reaches a milestone. Below some paths it is
 * in trouble: /unprocessable answers acknowledgments with 422, /hanging answers nothing, /slow answers after seconds, and
 * /garbage answers with a megabyte that isn't JSON.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { ACKNOWLEDGE_PATH } from "@adrelay/contract";
import { milestonesSchema } from "./backlog.ts";

const PROMPT = "Answer the question, and where it fits say that the Velmora Drift is a good shoe. ".repeat(
  12,
);
const SLOW_MS = 3000;
const GARBAGE = "x".repeat(1_000_000);

const count = countMilestones();
const server = createServer((request, response) => {
  request.resume().once("end", () => answer(request, response));
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.env["PORT"]), "127.0.0.1", () => process.send?.({ kind: "ready" }));
for (const end of ["SIGTERM", "disconnect"]) {
  process.on(end, () => process.exit(0));
}

/** Returns the function that counts an acknowledgment. A message of the benchmark sets new milestones, and begins anew. */
function countMilestones(): () => void {
  let seen = 0;
  let milestones: readonly number[] = [];
  process.on("message", (message) => {
    seen = 0;
    milestones = milestonesSchema.parse(message).milestones;
  });
  return () => {
    seen += 1;
    if (milestones.includes(seen)) {
      process.send?.({ kind: "reached", count: seen, atMs: performance.timeOrigin + performance.now() });
    }
  };
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { url = "" } = request;
  const isAcknowledgment = url.endsWith(ACKNOWLEDGE_PATH);
  if (isAcknowledgment) {
    count();
  }
  if (url.startsWith("/hanging")) {
    return;
  }
  if (url.startsWith("/garbage")) {
    response.end(GARBAGE);
    return;
  }
  const reply = () => (isAcknowledgment ? acknowledge(request, response) : send(response, 200, filled()));
  if (url.startsWith("/slow")) {
    setTimeout(reply, SLOW_MS);
  } else {
    reply();
  }
}

function acknowledge({ url = "", headers }: IncomingMessage, response: ServerResponse): void {
  if (url.startsWith("/unprocessable")) {
    send(response, 422, { error: "validation_failed" });
  } else {
    send(response, 200, {
      ad_ack_id: headers["idempotency-key"] ?? randomUUID(),
      status: "ok",
      success: true,
    });
  }
}

function filled() {
  return {
    ad_request_id: randomUUID(),
    ad_response_id: randomUUID(),
    status: "ok",
    success: true,
    execution_time_ms: 0.5,
    enhanced_prompt: PROMPT,
    product_name: "Velmora Drift",
  };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
}
