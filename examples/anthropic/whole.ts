/** Anthropic's client: a whole message with a tool. `node examples/anthropic/whole.ts "A question"` */
import { Anthropic } from "@anthropic-ai/sdk";

const client = new Anthropic({
  baseURL: process.env["PROXY_URL"],
  apiKey: process.env["MODEL_KEY"],
  defaultHeaders: { "X-Service-API-Key": process.env["RELAY_KEY"] },
});
/** Of the end user who reads the answer: with each call, never with the client. */
const headers = {
  "X-Adrelay-Session-Id": "session-1",
  "X-Adrelay-User-Agent": "Mozilla/5.0",
  "X-Adrelay-User-IP": "203.0.113.7",
};

const schema = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ name: "weather", input_schema: schema }];
const question = process.argv[2] ?? "Which running shoes should I buy for Lisbon? Please use the tool.";
const messages: Anthropic.MessageParam[] = [{ role: "user", content: question }];

for (let isOver = false; !isOver; ) {
  const call = { model: "claude-opus-5", max_tokens: 1000, tools, messages };
  const { content } = await client.messages.create(call, { headers });
  console.log(content.map((block) => (block.type === "text" ? block.text : "")).join(""));
  const results = content.flatMap((block) =>
    block.type === "tool_use"
      ? [{ type: "tool_result" as const, tool_use_id: block.id, content: "It is sunny." }]
      : [],
  );
  messages.push({ role: "assistant", content }, { role: "user", content: results });
  isOver = results.length === 0;
}
