/** The official clients read the recorded streams, too: what the dialects read of them must be the same. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";

const FOLDER = fileURLToPath(new URL("./testdata/streams/", import.meta.url));
/** The clients refuse what isn't JSON, or isn't the provider's own form. */
const NOT_FOR_CLIENTS = [
  "odd-chunks",
  "odd-events",
  "parts",
  "done-alone",
  "other-choices",
  "server-shell",
  "after-end",
];

interface Read {
  readonly text: string;
  readonly callIds: readonly string[];
}

interface Recorded extends Read {
  readonly end?: string;
}

function namesOf(folder: string, suffix: string): string[] {
  return readdirSync(FOLDER + folder)
    .filter((file) => file.endsWith(suffix))
    .map((file) => file.replace(suffix, ""))
    .filter((name) => !NOT_FOR_CLIENTS.includes(name));
}

function expectedOf(folder: string, name: string): Recorded {
  return JSON.parse(readFileSync(`${FOLDER}${folder}/${name}.expected.json`, "utf8"));
}

/** Answers each request with the recording. */
function options(folder: string, name: string) {
  const body = readFileSync(`${FOLDER}${folder}/${name}.sse`);
  const fetch = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });
  return { apiKey: "test", maxRetries: 0, fetch };
}

async function readChat(name: string): Promise<Read> {
  const client = new OpenAI(options("chat_completions", name));
  const stream = client.chat.completions.stream({ model: "m", messages: [{ role: "user", content: "x" }] });
  const message = (await stream.finalChatCompletion()).choices[0]?.message;
  return { text: message?.content ?? "", callIds: (message?.tool_calls ?? []).map(({ id }) => id) };
}

async function readResponses(name: string): Promise<Read> {
  const client = new OpenAI(options("responses", name));
  const stream = await client.responses.create({ model: "m", input: "x", stream: true });
  let text = "";
  let failed = false;
  let output: OpenAI.Responses.ResponseOutputItem[] = [];
  for await (const event of stream) {
    if (event.type === "response.output_text.delta") text += event.delta;
    if (event.type === "response.completed" || event.type === "response.incomplete")
      output = event.response.output;
    failed ||= event.type === "response.failed" || event.type === "error";
  }
  if (failed) throw new TypeError("failed");
  const parts = output.flatMap((item) => (item.type === "message" ? item.content : []));
  expect(parts.map((part) => (part.type === "output_text" ? part.text : "")).join("")).toBe(text);
  const callIds = output.flatMap((item) => {
    if (item.type === "function_call" || item.type === "custom_tool_call") return item.call_id;
    return item.type === "mcp_approval_request" ? item.id : [];
  });
  return { text, callIds };
}

async function readMessages(name: string): Promise<Read> {
  const client = new Anthropic(options("messages", name));
  const stream = client.messages.stream({
    model: "m",
    max_tokens: 9,
    messages: [{ role: "user", content: "x" }],
  });
  const { content, stop_reason } = await stream.finalMessage();
  const types = stop_reason === "pause_turn" ? ["tool_use", "server_tool_use", "mcp_tool_use"] : ["tool_use"];
  return {
    text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    callIds: content.flatMap((block) => ("id" in block && types.includes(block.type) ? block.id : [])),
  };
}

describe.each([
  ["chat_completions", readChat],
  ["responses", readResponses],
  ["messages", readMessages],
] as const)("%s", (folder, read) => {
  test.each(namesOf(folder, ".sse"))("the official client reads the same of %s", async (name) => {
    const { end, ...expected } = expectedOf(folder, name);
    if (end === "complete" || end === "continues") expect(await read(name)).toEqual(expected);
    if (end === "failed") await expect(read(name)).rejects.toThrow();
  });
});
