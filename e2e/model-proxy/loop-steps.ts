/** One step of a tool loop in each dialect, called by the official clients, so that a test sees it while it runs. */
import { Anthropic } from "@anthropic-ai/sdk";
import { OpenAI } from "openai";
import { headersOf } from "./proxy-stack.ts";

export interface StepQuestion {
  readonly proxyUrl: string;
  readonly session: string;
  readonly userText: string;
  /** The tool calls that were answered since, by the answers in which they were made. */
  readonly answered: readonly (readonly string[])[];
  /** For the demo model, in its header. */
  readonly fault?: string;
  /** How often the client repeats a failed call. */
  readonly maxRetries?: number;
  readonly signal?: AbortSignal;
}

/** A step that has begun: its headers have come. `text` and `callIds` grow. */
export interface RunningStep {
  readonly ad: string | null;
  readonly id: string | undefined;
  text: string;
  readonly callIds: string[];
  isOver: boolean;
  readonly ended: Promise<void>;
}

export type StartStep = (question: StepQuestion) => Promise<RunningStep>;

const TOOLS = ["weather", "news"];
const SCHEMA = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] };
const INPUT = { city: "Lisbon" };
const MODEL = "demo";

const startChat: StartStep = async (question) => {
  const { userText, answered, signal } = question;
  const tools = TOOLS.map((name) => ({
    type: "function" as const,
    function: { name, parameters: SCHEMA },
  }));
  const rounds = answered.flatMap((ids): OpenAI.ChatCompletionMessageParam[] => {
    const made = { name: "weather", arguments: JSON.stringify(INPUT) };
    const calls = ids.map((id) => ({ id, type: "function" as const, function: made }));
    const results = ids.map((id) => ({ role: "tool" as const, tool_call_id: id, content: "sunny" }));
    return [{ role: "assistant", content: null, tool_calls: calls }, ...results];
  });
  const { data, response } = await openAi(question)
    .chat.completions.create(
      { model: MODEL, stream: true, tools, messages: [{ role: "user", content: userText }, ...rounds] },
      { signal },
    )
    .withResponse();
  return follow(response, data, (chunk, step) => {
    const { content, tool_calls = [] } = chunk.choices[0]?.delta ?? {};
    step.text += content ?? "";
    step.callIds.push(...tool_calls.flatMap(({ id }) => id ?? []));
  });
};

const startResponse: StartStep = async (question) => {
  const { userText, answered, signal } = question;
  const tools = TOOLS.map((name) => ({
    type: "function" as const,
    name,
    parameters: SCHEMA,
    strict: false,
  }));
  const rounds = answered.flatMap((ids) =>
    ids.flatMap((id): OpenAI.Responses.ResponseInputItem[] => resultItems(id)),
  );
  const input = [{ role: "user" as const, content: userText }, ...rounds];
  const { data, response } = await openAi(question)
    .responses.create({ model: MODEL, stream: true, store: false, tools, input }, { signal })
    .withResponse();
  return follow(response, data, (event, step) => {
    step.text += event.type === "response.output_text.delta" ? event.delta : "";
    const item = event.type === "response.output_item.added" ? event.item : undefined;
    step.callIds.push(...(item?.type === "function_call" ? [item.call_id] : []));
    step.callIds.push(...(item?.type === "mcp_approval_request" ? [item.id] : []));
  });
};

function resultItems(id: string): OpenAI.Responses.ResponseInputItem[] {
  const input = JSON.stringify(INPUT);
  return id.startsWith("mcpr_")
    ? [
        { type: "mcp_approval_request", id, name: "book", server_label: "demo", arguments: input },
        { type: "mcp_approval_response", approval_request_id: id, approve: true },
      ]
    : [
        { type: "function_call", call_id: id, name: "weather", arguments: input },
        { type: "function_call_output", call_id: id, output: "sunny" },
      ];
}

const startMessage: StartStep = async (question) => {
  const { userText, answered, signal } = question;
  const tools = TOOLS.map((name) => ({ name, input_schema: SCHEMA }));
  const rounds = answered.flatMap(messagesOf);
  const messages = [{ role: "user" as const, content: userText }, ...rounds];
  const { data, response } = await anthropic(question)
    .messages.create({ model: MODEL, max_tokens: 1000, stream: true, tools, messages }, { signal })
    .withResponse();
  return follow(response, data, (event, step) => {
    const delta = event.type === "content_block_delta" ? event.delta : undefined;
    step.text += delta?.type === "text_delta" ? delta.text : "";
    const block = event.type === "content_block_start" ? event.content_block : undefined;
    step.callIds.push(...(block !== undefined && "id" in block ? [block.id] : []));
  });
};

/** A call of the server's own tool, at which the turn pauses, has no result from the client. */
function messagesOf(ids: readonly string[]): Anthropic.MessageParam[] {
  const calls = ids.map((id) =>
    id.startsWith("srvtoolu_")
      ? { type: "server_tool_use" as const, id, name: "web_search" as const, input: {} }
      : { type: "tool_use" as const, id, name: "weather", input: INPUT },
  );
  const results = calls.flatMap(({ type, id }) =>
    type === "tool_use" ? [{ type: "tool_result" as const, tool_use_id: id, content: "sunny" }] : [],
  );
  const answer = { role: "assistant" as const, content: calls };
  return results.length === 0 ? [answer] : [answer, { role: "user", content: results }];
}

export const DIALECTS: readonly (readonly [string, StartStep])[] = [
  ["chat completions", startChat],
  ["responses", startResponse],
  ["messages", startMessage],
];
export { startChat, startMessage, startResponse };

function optionsOf({ session, fault, maxRetries = 0 }: StepQuestion) {
  const asked = fault === undefined ? {} : { "X-Demo-Fault": fault };
  // The demo model's records keep it; ours don't go upstream.
  const defaultHeaders = { ...headersOf(session), "X-Run": session, ...asked };
  return { apiKey: "k", maxRetries, defaultHeaders };
}

const openAi = (question: StepQuestion) =>
  new OpenAI({ ...optionsOf(question), baseURL: `${question.proxyUrl}/v1` });
const anthropic = (question: StepQuestion) =>
  new Anthropic({ ...optionsOf(question), baseURL: question.proxyUrl });

/** Reads the stream in the background. A stream that breaks is over, too. */
function follow<Event>(
  { headers }: Response,
  events: AsyncIterable<Event>,
  read: (event: Event, step: Pick<RunningStep, "text" | "callIds"> & { text: string }) => void,
): RunningStep {
  const ended = Promise.withResolvers<void>();
  const step: RunningStep = {
    ad: headers.get("x-adrelay-ad"),
    id: headers.get("x-adrelay-ad-response-id") ?? undefined,
    text: "",
    callIds: [],
    isOver: false,
    ended: ended.promise,
  };
  const readAll = async () => {
    for await (const event of events) {
      read(event, step);
    }
  };
  void readAll()
    .catch(() => {})
    .then(() => {
      step.isOver = true;
      ended.resolve();
    });
  return step;
}
