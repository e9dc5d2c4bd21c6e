/** Vercel's AI SDK with Anthropic's messages: a streamed text with a tool. `node examples/ai-sdk-anthropic/streamed.ts "A question"` */
import { createAnthropic } from "@ai-sdk/anthropic";
import { isStepCount, streamText, tool } from "ai";
import { z } from "zod";

const provider = createAnthropic({
  baseURL: `${process.env["PROXY_URL"]}/v1`,
  apiKey: String(process.env["MODEL_KEY"]),
  headers: { "X-Service-API-Key": String(process.env["RELAY_KEY"]) },
});
/** Of the end user who reads the answer: with each call, never with the provider. */
const headers = {
  "X-Adrelay-Session-Id": "session-1",
  "X-Adrelay-User-Agent": "Mozilla/5.0",
  "X-Adrelay-User-IP": "203.0.113.7",
};
/** A backend aborts when its user leaves. */
const gone = new AbortController();
process.once("SIGINT", () => gone.abort());

const weather = tool({
  description: "Tells the weather of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `It is sunny in ${city}.`,
});
const { textStream } = streamText({
  model: provider("claude-opus-5"),
  headers,
  abortSignal: gone.signal,
  tools: { weather },
  stopWhen: isStepCount(5),
  prompt: process.argv[2] ?? "Which running shoes should I buy for Lisbon? Please use the tool.",
});
for await (const text of textStream) {
  process.stdout.write(text);
}
