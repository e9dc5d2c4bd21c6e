/**
 * A model's server that streams a canned answer, as a separate process: chat completions, with one event in each write. It is
 * barer than the demo model, so that most of the time is the proxy's. The name of the model says how many events come and at
 * which pace. A long body is read to its end, but only its beginning is looked at.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { readForm, type StreamForm } from "./stream-load.ts";

/** The text of an event: 40 characters. */
const TEXT = "A good shoe for a first marathon is soft.";
const HEAD_CHARS_MAX = 16_384;

const chunkOf = (delta: object, finish: string | null) => {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
  const chunk = {
    id: "chatcmpl-bench",
    object: "chat.completion.chunk",
    created: 1,
    model: "bench",
    choices,
  };
  return `data: ${JSON.stringify(chunk)}\n\n`;
};
const EVENT = Buffer.from(chunkOf({ content: TEXT.slice(0, 40) }, null));
const END = Buffer.from(`${chunkOf({}, "stop")}data: [DONE]\n\n`);

const server = createServer((request, response) => {
  let head = "";
  request.on("data", (piece: Buffer) => {
    if (head.length < HEAD_CHARS_MAX) {
      head += piece.toString("latin1", 0, HEAD_CHARS_MAX);
    }
  });
  request.once("end", () => stream(request, response, readForm(head)));
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.env["PORT"]), "127.0.0.1", () => process.send?.({ kind: "ready" }));
for (const end of ["SIGTERM", "disconnect"]) {
  process.on(end, () => process.exit(0));
}

function stream(_request: IncomingMessage, response: ServerResponse, { events, pauseMs }: StreamForm): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  let left = events;
  const step = () => {
    if (response.destroyed) {
      return false;
    }
    if (left === 0) {
      response.end(END);
      return false;
    }
    left -= 1;
    response.write(EVENT);
    return true;
  };
  step();
  if (pauseMs === 0) {
    const next = () => void (step() && setImmediate(next));
    setImmediate(next);
  } else {
    const timer = setInterval(() => void (step() || clearInterval(timer)), pauseMs);
  }
}
