/**
 * The naive way for models with an ad: the bare proxy, which also makes the calls that no model proxy with paid ads can leave out. One after
 * the other: it asks Redis whether the call is a retry, the ad service for the ad, and Redis to keep the ad and then the text.
 * Nothing is checked or limited.
 */
import { hash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import { Redis } from "ioredis";
import { Agent, request } from "undici";
import { z } from "zod";
import { endToEnd } from "./end-to-end.ts";

const chatSchema = z.looseObject({ messages: z.array(z.object({ role: z.string(), content: z.string() })) });
const injectionSchema = z.object({ ad_response_id: z.string(), enhanced_prompt: z.string() });
const chunkSchema = z.object({
  choices: z.array(z.object({ delta: z.object({ content: z.string().optional() }) })),
});

const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0, allowH2: false });
const redis = new Redis(process.env["REDIS_URL"] ?? "");
const model = process.env["MODEL_URL"] ?? "";
const provider = `${process.env["PROVIDER_URL"]}${INJECTION_PATH}`;

const server = createServer((incoming, outgoing) => {
  relay(incoming, outgoing).catch(() => outgoing.destroy());
});

async function relay(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const chat = chatSchema.parse(await json(incoming));
  const session = String(incoming.headers["x-adrelay-session-id"]);
  const call = hash("sha256", JSON.stringify([session, chat]));
  const isRetry = (await redis.exists(`call:${call}`)) === 1;
  const question = chat.messages.at(-1);
  if (isRetry || question === undefined) {
    throw new Error("the benchmark sends no retries and no empty chats");
  }
  const ad = await askForAd(question.content, session);
  const id = ad.ad_response_id;
  const opened = redis
    .multi()
    .hset(`ad:${id}`, "call", call, "session", session)
    .zadd("open", Date.now(), id);
  await opened.exec();
  question.content = ad.enhanced_prompt;
  const { "content-length": _, ...passedOn } = endToEnd(incoming.headers);
  const { statusCode, headers, body } = await request(`${model}${incoming.url}`, {
    dispatcher,
    method: "POST",
    headers: passedOn,
    body: JSON.stringify(chat),
  });
  outgoing.writeHead(statusCode, endToEnd(headers));
  let text = "";
  for await (const chunk of body.setEncoding("utf8")) {
    outgoing.write(chunk);
    text += textOf(String(chunk));
  }
  outgoing.end();
  await redis.multi().zrem("open", id).hset(`ad:${id}`, "text", text).rpush("answers", id).exec();
}

async function askForAd(prompt: string, session: string): Promise<z.infer<typeof injectionSchema>> {
  const context = { session_id: session, user_agent: "benchmark", user_ip: "203.0.113.7" };
  const { body } = await request(provider, {
    dispatcher,
    method: "POST",
    headers: { [API_KEY_HEADER]: "key-at-the-provider", "content-type": "application/json" },
    body: JSON.stringify({ prompt, request_context: context }),
  });
  return injectionSchema.parse(await body.json());
}

/** The model sends whole events in each write, and Node mostly reads them so. What is cut isn't counted. */
function textOf(events: string): string {
  return events
    .split("\n\n")
    .filter((event) => event.startsWith("data: {") && event.endsWith("}"))
    .map(
      (event) => chunkSchema.parse(JSON.parse(event.slice("data: ".length))).choices[0]?.delta.content ?? "",
    )
    .join("");
}

server.listen(Number(process.env["PORT"]), "127.0.0.1", () => process.send?.({ kind: "ready" }));
for (const end of ["SIGTERM", "disconnect"]) {
  process.on(end, () => {
    server.closeAllConnections();
    process.exit(0);
  });
}
