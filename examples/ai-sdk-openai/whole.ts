/** Vercel's AI SDK with OpenAI's responses: a whole text with a tool. `node examples/ai-sdk-openai/whole.ts "A question"` */
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, tool } from "ai";
import { z } from "zod";

const provider = createOpenAI({
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

const weather = tool({
  description: "Tells the weather of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `It is sunny in ${city}.`,
});
const { steps } = await generateText({
  model: provider("gpt-5"),
  headers,
  tools: { weather },
  stopWhen: isStepCount(5),
  prompt: process.argv[2] ?? "Which running shoes should I buy for Lisbon? Please use the tool.",
});
console.log(steps.map(({ text }) => text).join("\n"));
