/** OpenAI's client: a whole chat completion with a tool. `node examples/openai-chat/whole.ts "A question"` */
import { OpenAI } from "openai";

const client = new OpenAI({
  baseURL: `${process.env["PROXY_URL"]}/v1`,
  apiKey: process.env["MODEL_KEY"],
  defaultHeaders: { "X-Service-API-Key": process.env["RELAY_KEY"] },
});
/** Of the end user who reads the answer: with each call, never with the client. */
const headers = {
  "X-Adrelay-Session-Id": "session-1",
  "X-Adrelay-User-Agent": "Mozilla/5.0",
  "X-Adrelay-User-IP": "203.0.113.7",
};

const weather = {
  name: "weather",
  description: "Tells the weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  parse: JSON.parse,
  function: ({ city }: { city: string }) => `It is sunny in ${city}.`,
};
const question = process.argv[2] ?? "Which running shoes should I buy for Lisbon? Please use the tool.";
const loop = client.chat.completions.runTools(
  {
    model: "gpt-5",
    messages: [{ role: "user", content: question }],
    tools: [{ type: "function", function: weather }],
  },
  { headers },
);
loop.on("content", (text) => console.log(text));
await loop.done();
