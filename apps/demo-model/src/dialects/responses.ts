/** OpenAI's Responses. */
import { z } from "zod";
import { type Ask, answerTokens, type Reply, type ReplyEnd, type ToolCall, tokensOf } from "../answer/ask.ts";
import {
  countSteps,
  type Dialect,
  halvesOf,
  makeId,
  nowSeconds,
  parserOf,
  promptOf,
  type SseEvent,
  toolChoiceOf,
} from "./dialect.ts";

/** What clients add to items of an output. OpenAI refuses them in an input: they are no parameters of it. */
const ADDED_BY_CLIENTS = ["parsed_arguments", "parsed"];

const inputItemSchema = z
  .looseObject({
    type: z.string().optional(),
    role: z.string().optional(),
    content: z.union([z.string(), z.array(z.looseObject({}))]).optional(),
  })
  .superRefine((item, context) => {
    const parts = Array.isArray(item.content) ? item.content : [];
    for (const name of ADDED_BY_CLIENTS.filter((added) => [item, ...parts].some((one) => added in one))) {
      context.addIssue({ code: "custom", path: [name], message: "Unknown parameter" });
    }
  });

const bodySchema = z.looseObject({
  model: z.string().min(1),
  input: z.union([z.string(), z.array(inputItemSchema).min(1)]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  store: z.boolean().nullish(),
  previous_response_id: z.string().nullish(),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z.union([z.string(), z.looseObject({})]).nullish(),
});

type Body = z.infer<typeof bodySchema>;

function askOf(body: Body, requestChars: number): Ask {
  const { input, tools, tool_choice: choice } = body;
  const items = typeof input === "string" ? [{ role: "user", content: input }] : input;
  return {
    model: body.model,
    isStream: body.stream === true,
    prompt: promptOf(items, ["input_text", "text"]),
    tools: (tools ?? []).flatMap(({ type, name, parameters }) =>
      type === "function" && typeof name === "string" ? [{ name, parameters }] : [],
    ),
    toolChoice: toolChoiceOf(choice),
    stepsBefore: countSteps(items, ({ type }) => /_output$|^mcp_approval_response$/.test(String(type))),
    wantsUsage: true,
    requestChars,
  };
}

function usageOf({ requestChars }: Ask, reply: Reply) {
  const [input, output] = [tokensOf(requestChars), answerTokens(reply)];
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: tokensOf(reply.reasoning.length) },
    total_tokens: input + output,
  };
}

/** An item of the output: whole, as it begins, and the events between. They lack its place. */
interface Item {
  readonly whole: { readonly id: string; readonly [member: string]: unknown };
  readonly start: object;
  readonly events: readonly { readonly type: string; readonly members: object; readonly text?: string }[];
}

function itemsOf({ reasoning, texts, end }: Reply): Item[] {
  return [
    ...(reasoning === "" ? [] : [reasoningItem(reasoning)]),
    ...(texts.length === 0 ? [] : [textItem(texts)]),
    ...endItems(end),
  ];
}

function reasoningItem(text: string): Item {
  const head = { id: makeId("rs_"), type: "reasoning" };
  const part = { type: "summary_text", text };
  const at = { summary_index: 0 };
  return {
    whole: { ...head, summary: [part] },
    start: { ...head, summary: [] },
    events: [
      { type: "response.reasoning_summary_part.added", members: { ...at, part: { ...part, text: "" } } },
      { type: "response.reasoning_summary_text.delta", members: { ...at, delta: text } },
      { type: "response.reasoning_summary_text.done", members: { ...at, text } },
      { type: "response.reasoning_summary_part.done", members: { ...at, part } },
    ],
  };
}

function messageItem(part: object, emptyPart: object, between: Item["events"]): Item {
  const head = { id: makeId("msg_"), type: "message", role: "assistant" };
  return {
    whole: { ...head, status: "completed", content: [part] },
    start: { ...head, status: "in_progress", content: [] },
    events: [
      { type: "response.content_part.added", members: { content_index: 0, part: emptyPart } },
      ...between,
      { type: "response.content_part.done", members: { content_index: 0, part } },
    ],
  };
}

function textItem(texts: readonly string[]): Item {
  const text = texts.join("");
  const part = { type: "output_text", annotations: [], logprobs: [], text };
  const at = { content_index: 0, logprobs: [] };
  return messageItem(part, { ...part, text: "" }, [
    ...texts.map((delta) => ({ type: "response.output_text.delta", members: { ...at, delta }, text: delta })),
    { type: "response.output_text.done", members: { ...at, text } },
  ]);
}

function endItems(end: ReplyEnd): Item[] {
  switch (end.kind) {
    case "tool_calls":
      return end.calls.map(callItem);
    case "approval": {
      const tool = { server_label: "demo", name: "book", arguments: '{"city":"Lisbon"}' };
      const whole = { id: makeId("mcpr_"), type: "mcp_approval_request", ...tool };
      return [{ whole, start: whole, events: [] }];
    }
    case "refusal": {
      const { reason: refusal } = end;
      const at = { content_index: 0 };
      return [
        messageItem({ type: "refusal", refusal }, { type: "refusal", refusal: "" }, [
          { type: "response.refusal.delta", members: { ...at, delta: refusal } },
          { type: "response.refusal.done", members: { ...at, refusal } },
        ]),
      ];
    }
    case "complete":
    case "pause":
      return [];
    default:
      return end satisfies never;
  }
}

function callItem({ id, name, input }: ToolCall): Item {
  const head = { id: makeId("fc_"), type: "function_call", call_id: id ?? makeId("call_"), name };
  const deltas = halvesOf(input).map((delta) => ({
    type: "response.function_call_arguments.delta",
    members: { delta },
  }));
  return {
    whole: { ...head, arguments: input, status: "completed" },
    start: { ...head, arguments: "", status: "in_progress" },
    events: [
      ...deltas,
      { type: "response.function_call_arguments.done", members: { name, arguments: input } },
    ],
  };
}

function responseOf(ask: Ask, id: string): object {
  return {
    id,
    object: "response",
    created_at: nowSeconds(),
    status: "in_progress",
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model: ask.model,
    output: [],
    parallel_tool_calls: true,
    previous_response_id: null,
    store: false,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    truncation: "disabled",
    usage: null,
    metadata: {},
  };
}

function formatAnswer(ask: Ask, reply: Reply): object {
  const output = itemsOf(reply).map(({ whole }) => whole);
  return { ...responseOf(ask, makeId("resp_")), status: "completed", output, usage: usageOf(ask, reply) };
}

function* formatEvents(
  ask: Ask,
  reply: Reply,
  { usageAfterEnd }: { readonly usageAfterEnd: boolean },
): Iterable<SseEvent> {
  let sequence = -1;
  const event = (type: string, members: object): SseEvent => {
    sequence += 1;
    return { name: type, data: JSON.stringify({ type, ...members, sequence_number: sequence }) };
  };
  const response = responseOf(ask, makeId("resp_"));
  const items = itemsOf(reply);
  yield event("response.created", { response });
  yield event("response.in_progress", { response });
  for (const [index, { whole, start, events }] of items.entries()) {
    yield event("response.output_item.added", { output_index: index, item: start });
    for (const { type, members, text } of events) {
      const one = event(type, { item_id: whole.id, output_index: index, ...members });
      yield text === undefined ? one : { ...one, text };
    }
    yield event("response.output_item.done", { output_index: index, item: whole });
  }
  const usage = usageOf(ask, reply);
  const completed = { ...response, status: "completed", output: items.map(({ whole }) => whole), usage };
  yield { ...event("response.completed", { response: completed }), isLast: true };
  if (usageAfterEnd) {
    // No event of today's interface. Callers must bear what they don't know.
    yield event("response.usage", { usage });
  }
}

export const responses: Dialect = {
  api: "openai",
  parseAsk: parserOf(bodySchema, askOf),
  formatAnswer,
  formatEvents,
  errorEvent: () => ({
    name: "error",
    data: JSON.stringify({
      type: "error",
      code: "server_error",
      message: "The server had an error while processing your request. Sorry about that!",
      param: null,
      sequence_number: 0,
    }),
  }),
};
