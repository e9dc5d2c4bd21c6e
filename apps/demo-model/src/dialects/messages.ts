/** Anthropic's Messages. */
import { z } from "zod";
import { type Ask, answerTokens, type Reply, type ReplyEnd, tokensOf } from "../answer/ask.ts";
import {
  type Dialect,
  halvesOf,
  makeId,
  parserOf,
  promptOf,
  type SseEvent,
  toolChoiceOf,
} from "./dialect.ts";

const messagesSchema = z
  .array(
    z.looseObject({
      role: z.enum(["user", "assistant", "system"]),
      content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]),
    }),
  )
  .min(1);

const countSchema = z.looseObject({
  model: z.string().min(1),
  messages: messagesSchema,
  stream: z.boolean().nullish(),
  tools: z.array(z.looseObject({ name: z.string() })).nullish(),
  tool_choice: z.looseObject({ type: z.string() }).nullish(),
});
const bodySchema = countSchema.extend({ max_tokens: z.int().min(1) });

type Body = z.infer<typeof countSchema>;

function askOf({ model, messages, stream, tools, tool_choice: choice }: Body, requestChars: number): Ask {
  return {
    model,
    isStream: stream === true,
    prompt: promptOf(messages, ["text"]),
    tools: (tools ?? []).flatMap(({ name, input_schema: parameters }) =>
      // Tools without a schema run at the provider.
      parameters === undefined ? [] : [{ name, parameters }],
    ),
    toolChoice: toolChoiceOf(choice?.type),
    stepsBefore: stepsBefore(messages),
    wantsUsage: true,
    requestChars,
  };
}

type Message = Body["messages"][number];

const hasPart = ({ content }: Message, types: readonly string[]) =>
  Array.isArray(content) && content.some(({ type }) => types.includes(type));

function stepsBefore(messages: readonly Message[]): number {
  const userAt = messages.findLastIndex(
    (message) => message.role === "user" && !hasPart(message, ["tool_result"]),
  );
  return messages.slice(userAt + 1).filter((message) => hasPart(message, ["tool_result", "server_tool_use"]))
    .length;
}

function usageOf({ requestChars }: Ask, outputTokens: number) {
  return {
    input_tokens: tokensOf(requestChars),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: outputTokens,
    service_tier: "standard",
  };
}

const STOP_REASONS = {
  complete: "end_turn",
  tool_calls: "tool_use",
  pause: "pause_turn",
  approval: "end_turn",
  refusal: "refusal",
} as const satisfies Record<ReplyEnd["kind"], string>;

/** A content block, and the deltas by which it is streamed. */
interface Block {
  readonly whole: object;
  readonly start: object;
  readonly deltas: readonly { readonly delta: object; readonly text?: string }[];
}

function blocksOf({ reasoning, texts, end }: Reply): Block[] {
  return [
    ...(reasoning === "" ? [] : [thinkingBlock(reasoning)]),
    ...(texts.length === 0 ? [] : [textBlock(texts)]),
    ...toolBlocks(end),
  ];
}

function thinkingBlock(thinking: string): Block {
  const signature = Buffer.from("demo-signature").toString("base64");
  return {
    whole: { type: "thinking", thinking, signature },
    start: { type: "thinking", thinking: "", signature: "" },
    deltas: [
      { delta: { type: "thinking_delta", thinking } },
      { delta: { type: "signature_delta", signature } },
    ],
  };
}

function textBlock(texts: readonly string[]): Block {
  return {
    whole: { type: "text", text: texts.join(""), citations: null },
    start: { type: "text", text: "" },
    deltas: texts.map((text) => ({ delta: { type: "text_delta", text }, text })),
  };
}

function toolBlocks(end: ReplyEnd): Block[] {
  switch (end.kind) {
    case "tool_calls":
      return end.calls.map(({ id, name, input }) =>
        toolBlock({ type: "tool_use", id: id ?? makeId("toolu_"), name }, input),
      );
    case "pause":
      return [
        toolBlock(
          { type: "server_tool_use", id: makeId("srvtoolu_"), name: "web_search" },
          '{"query":"demo"}',
        ),
      ];
    case "complete":
    case "approval":
    case "refusal":
      return [];
    default:
      return end satisfies never;
  }
}

function toolBlock(head: object, input: string): Block {
  const parts = ["", ...halvesOf(input)];
  return {
    whole: { ...head, input: JSON.parse(input) },
    start: { ...head, input: {} },
    deltas: parts.map((part) => ({ delta: { type: "input_json_delta", partial_json: part } })),
  };
}

function formatAnswer(ask: Ask, reply: Reply): object {
  return {
    id: makeId("msg_"),
    type: "message",
    role: "assistant",
    model: ask.model,
    content: blocksOf(reply).map(({ whole }) => whole),
    stop_reason: STOP_REASONS[reply.end.kind],
    stop_sequence: null,
    usage: usageOf(ask, answerTokens(reply)),
  };
}

const event = (name: string, members: object = {}): SseEvent => ({
  name,
  data: JSON.stringify({ type: name, ...members }),
});

function* formatEvents(
  ask: Ask,
  reply: Reply,
  { usageAfterEnd }: { readonly usageAfterEnd: boolean },
): Iterable<SseEvent> {
  const message = { ...formatAnswer(ask, reply), content: [], stop_reason: null, usage: usageOf(ask, 1) };
  yield event("message_start", { message });
  for (const [index, { start, deltas }] of blocksOf(reply).entries()) {
    yield event("content_block_start", { index, content_block: start });
    if (index === 0) {
      yield event("ping");
    }
    for (const { delta, text } of deltas) {
      const one = event("content_block_delta", { index, delta });
      yield text === undefined ? one : { ...one, text };
    }
    yield event("content_block_stop", { index });
  }
  const usage = usageOf(ask, answerTokens(reply));
  const delta = { stop_reason: STOP_REASONS[reply.end.kind], stop_sequence: null };
  yield event("message_delta", { delta, usage });
  yield { ...event("message_stop"), isLast: true };
  if (usageAfterEnd) {
    // No event of today's interface. Callers must bear what they don't know.
    yield event("usage", { usage });
  }
}

export const messages: Dialect = {
  api: "anthropic",
  parseAsk: parserOf(bodySchema, askOf),
  formatAnswer,
  formatEvents,
  errorEvent: () => event("error", { error: { type: "overloaded_error", message: "Overloaded" } }),
};

/** The call that only counts tokens needs no `max_tokens`. */
export const countTokens: Pick<Dialect, "api" | "parseAsk"> = {
  api: "anthropic",
  parseAsk: parserOf(countSchema, askOf),
};
