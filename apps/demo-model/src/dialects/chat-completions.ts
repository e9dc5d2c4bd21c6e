/** OpenAI's Chat Completions. */
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

const bodySchema = z.looseObject({
  model: z.string().min(1),
  messages: z
    .array(
      z.looseObject({
        role: z.enum(["system", "developer", "user", "assistant", "tool", "function"]),
        content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish(),
      }),
    )
    .min(1),
  n: z.literal(1, "the demo model makes only one choice").nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  tools: z
    .array(z.looseObject({ type: z.string(), function: z.looseObject({ name: z.string() }).optional() }))
    .nullish(),
  tool_choice: z.union([z.string(), z.looseObject({})]).nullish(),
});

function askOf(body: z.infer<typeof bodySchema>, requestChars: number): Ask {
  const { messages, tools, tool_choice: choice } = body;
  return {
    model: body.model,
    isStream: body.stream === true,
    prompt: promptOf(messages, ["text"]),
    tools: (tools ?? []).flatMap(({ function: tool }) =>
      tool === undefined ? [] : [{ name: tool.name, parameters: tool["parameters"] }],
    ),
    toolChoice: toolChoiceOf(choice),
    stepsBefore: countSteps(messages, ({ role }) => role === "tool" || role === "function"),
    wantsUsage: body.stream_options?.include_usage === true,
    requestChars,
  };
}

function usageOf({ requestChars }: Ask, reply: Reply) {
  const [prompt, completion] = [tokensOf(requestChars), answerTokens(reply)];
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: tokensOf(reply.reasoning.length),
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

const toolCallOf = ({ id, name, input }: ToolCall) => ({
  id: id ?? makeId("call_"),
  type: "function",
  function: { name, arguments: input },
});

/** This interface has neither a pause nor a reason for the end of a refusal. */
const finishOf = (end: ReplyEnd) => (end.kind === "tool_calls" ? "tool_calls" : "stop");

function formatAnswer(ask: Ask, reply: Reply): object {
  const { texts, end, reasoning } = reply;
  const message = {
    role: "assistant",
    content: texts.length === 0 ? null : texts.join(""),
    refusal: end.kind === "refusal" ? end.reason : null,
    annotations: [],
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(end.kind === "tool_calls" ? { tool_calls: end.calls.map(toolCallOf) } : {}),
  };
  return {
    id: makeId("chatcmpl-"),
    object: "chat.completion",
    created: nowSeconds(),
    model: ask.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(end) }],
    usage: usageOf(ask, reply),
    service_tier: "default",
    system_fingerprint: "fp_demo",
  };
}

function* formatEvents(
  ask: Ask,
  reply: Reply,
  { usageAfterEnd }: { readonly usageAfterEnd: boolean },
): Iterable<SseEvent> {
  const isUsageSent = ask.wantsUsage || usageAfterEnd;
  const head = {
    id: makeId("chatcmpl-"),
    object: "chat.completion.chunk",
    created: nowSeconds(),
    model: ask.model,
    service_tier: "default",
    system_fingerprint: "fp_demo",
  };
  const usage = isUsageSent ? { usage: null } : {};
  const chunk = (delta: object, finish: string | null = null): SseEvent => ({
    data: JSON.stringify({
      ...head,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      ...usage,
    }),
  });
  const { texts, end, reasoning } = reply;
  yield chunk({ role: "assistant", content: end.kind === "tool_calls" ? null : "", refusal: null });
  if (reasoning !== "") {
    yield chunk({ reasoning_content: reasoning });
  }
  for (const text of texts) {
    yield { ...chunk({ content: text }), text };
  }
  yield* deltasOf(end).map((delta) => chunk(delta));
  yield chunk({}, finishOf(end));
  if (isUsageSent) {
    yield { data: JSON.stringify({ ...head, choices: [], usage: usageOf(ask, reply) }) };
  }
  yield { data: "[DONE]", isLast: true };
}

/** What is streamed besides texts. */
function deltasOf(end: ReplyEnd): object[] {
  switch (end.kind) {
    case "tool_calls":
      return end.calls.flatMap((call, index) => {
        const whole = toolCallOf(call);
        const first = { index, ...whole, function: { name: call.name, arguments: "" } };
        const rest = halvesOf(call.input).map((part) => ({ index, function: { arguments: part } }));
        return [first, ...rest].map((one) => ({ tool_calls: [one] }));
      });
    case "refusal":
      return [{ refusal: end.reason }];
    case "complete":
    case "pause":
    case "approval":
      return [];
    default:
      return end satisfies never;
  }
}

export const chatCompletions: Dialect = {
  api: "openai",
  parseAsk: parserOf(bodySchema, askOf),
  formatAnswer,
  formatEvents,
  errorEvent: () => ({
    data: JSON.stringify({
      error: {
        message: "The server had an error while processing your request. Sorry about that!",
        type: "server_error",
        param: null,
        code: null,
      },
    }),
  }),
};
