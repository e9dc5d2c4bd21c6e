/** The three dialects, as a backend knows them: what it sends. `answers.ts` has what it reads. */
import type { DialectName } from "@adrelay/core";

export const PATHS = {
  chat_completions: "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
} as const satisfies Record<DialectName, string>;

export interface Question {
  readonly dialect: DialectName;
  readonly isStreamed: boolean;
  readonly userText: string;
  readonly offersTools: boolean;
  /** The user has asked the same before in this session, and has an answer. */
  readonly isAskedAgain: boolean;
  /** The ids of the tool calls that were answered since, by the answers in which they were made. */
  readonly answered: readonly (readonly string[])[];
}

const TOOLS = ["search", "news"];
const SCHEMA = { type: "object", properties: {} };
const RESULT = "nothing new";

/** The body of a call, as the official clients send it. */
export function bodyOf({ dialect, isStreamed, userText, ...question }: Question): string {
  const asked = { role: "user", content: userText };
  const before = question.isAskedAgain ? [asked, { role: "assistant", content: "I don't know." }] : [];
  const items = [...before, asked, ...question.answered.flatMap(ROUNDS[dialect])];
  const tools = question.offersTools ? { tools: TOOLS.map(TOOL_FORMS[dialect]) } : {};
  const common = { model: "demo", stream: isStreamed, ...tools };
  switch (dialect) {
    case "chat_completions":
      return JSON.stringify({ ...common, messages: items });
    case "messages":
      return JSON.stringify({ ...common, max_tokens: 1000, messages: items });
    case "responses":
      return JSON.stringify({ ...common, input: items });
    default:
      return dialect satisfies never;
  }
}

const TOOL_FORMS: Readonly<Record<DialectName, (name: string) => object>> = {
  chat_completions: (name) => ({ type: "function", function: { name, parameters: SCHEMA } }),
  messages: (name) => ({ name, input_schema: SCHEMA }),
  responses: (name) => ({ type: "function", name, parameters: SCHEMA, strict: false }),
};

/** An answer that called tools, and their results. */
const ROUNDS: Readonly<Record<DialectName, (ids: readonly string[]) => readonly object[]>> = {
  chat_completions: (ids) => [
    {
      role: "assistant",
      content: null,
      tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "search", arguments: "{}" } })),
    },
    ...ids.map((id) => ({ role: "tool", tool_call_id: id, content: RESULT })),
  ],
  messages: (ids) => [
    { role: "assistant", content: ids.map((id) => ({ type: "tool_use", id, name: "search", input: {} })) },
    { role: "user", content: ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: RESULT })) },
  ],
  responses: (ids) => [
    ...ids.map((id) => ({ type: "function_call", call_id: id, name: "search", arguments: "{}" })),
    ...ids.map((id) => ({ type: "function_call_output", call_id: id, output: RESULT })),
  ],
};
