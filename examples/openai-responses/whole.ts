/** OpenAI's client: a whole response with a tool. `node examples/openai-responses/whole.ts "A question"` */
import { OpenAI } from "openai";
import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";

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

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function" as const, name: "weather", parameters, strict: false }];
const question = process.argv[2] ?? "Which running shoes should I buy for Lisbon? Please use the tool.";
const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: question }];

for (let isOver = false; !isOver; ) {
  // The whole conversation is sent: with previous_response_id there would be no ad.
  const call = { model: "gpt-5", input, tools, store: false };
  const { output, output_text } = await client.responses.create(call, { headers });
  console.log(output_text);
  const results = output.flatMap((item) =>
    item.type === "function_call"
      ? [{ type: "function_call_output" as const, call_id: item.call_id, output: "It is sunny." }]
      : [],
  );
  // What the client has added to the output is no input.
  input.push(...toResponseInputItems(output), ...results);
  isOver = results.length === 0;
}
