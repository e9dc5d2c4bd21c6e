/** A model's server on a socket that speaks the three APIs as their SDKs expect them, and answers by a script. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";

/** What the model answers to a call. */
export interface Answer {
  /** The chunks of its text. */
  readonly texts?: readonly string[];
  readonly toolCalls?: readonly { readonly id: string; readonly name: string; readonly input: string }[];
  /** The connection breaks after so many events. */
  readonly breakAfter?: number;
  /** An error instead of all but the first events. */
  readonly failAfter?: number;
  /** An error instead of an answer. */
  readonly status?: number;
}

export interface ModelCall {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
}

export interface ModelServer {
  readonly url: string;
  readonly calls: ModelCall[];
  /** Decides by the call, and by how many came before. */
  onCall(script: (call: ModelCall, count: number) => Answer): void;
  close(): Promise<void>;
}

type SseEvent = readonly [name: string | undefined, data: unknown];

/** A thought and the arguments of tools are in each stream: they are no text for the user. */
const THOUGHT = "a thought of the model";

export async function startModelServer(): Promise<ModelServer> {
  const calls: ModelCall[] = [];
  let script: (call: ModelCall, count: number) => Answer = () => ({ texts: ["One ", "two ", "three."] });
  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      const call = { path: request.url ?? "", headers: request.headers, body };
      calls.push(call);
      respond(response, call, script(call, calls.length - 1));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    calls,
    onCall: (next) => {
      script = next;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString());
}

const ERROR = {
  type: "error",
  error: { type: "scripted_error", message: "as the script says", code: null, param: null },
};

/** Both dialects know an error within an answer by this event. */
const failed = (events: readonly SseEvent[], after: number): readonly SseEvent[] => [
  ...events.slice(0, after),
  ["error", ERROR],
];

function respond(response: ServerResponse, { path, body }: ModelCall, answer: Answer): void {
  const dialect = path.endsWith("/messages")
    ? messages
    : path.endsWith("/responses")
      ? responses
      : completions;
  if (answer.status !== undefined) {
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(JSON.stringify(ERROR));
  } else if (body["stream"] === true) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const { failAfter, breakAfter } = answer;
    const events = dialect.events(answer);
    writeEvents(response, failAfter === undefined ? events : failed(events, failAfter), breakAfter);
  } else {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(dialect.whole(answer)));
  }
}

/** Each event in a chunk of its own: the next one goes out when the last one is written. */
function writeEvents(response: ServerResponse, events: readonly SseEvent[], breakAfter = Infinity): void {
  const [next, ...rest] = events;
  if (breakAfter === 0) {
    response.destroy();
  } else if (next === undefined) {
    response.end();
  } else {
    const [name, data] = next;
    const text = typeof data === "string" ? data : JSON.stringify(data);
    const event = `${name === undefined ? "" : `event: ${name}\n`}data: ${text}\n\n`;
    response.write(event, () => writeEvents(response, rest, breakAfter - 1));
  }
}

const joined = ({ texts = [] }: Answer) => texts.join("");
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, input_tokens: 1, output_tokens: 1 };

const completions = {
  events: ({ texts = [], toolCalls = [] }: Answer): SseEvent[] => {
    const chunk = (delta: object, finish_reason: string | null = null) => [
      undefined,
      {
        id: "c-1",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [{ index: 0, delta, finish_reason }],
      },
    ];
    const tools = toolCalls.map(({ id, name, input }, index) =>
      chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: input } }] }),
    );
    return [
      chunk({ role: "assistant", content: "", reasoning_content: THOUGHT }),
      ...texts.map((content) => chunk({ content })),
      ...tools,
      chunk({}, toolCalls.length > 0 ? "tool_calls" : "stop"),
      [undefined, "[DONE]"],
    ] as SseEvent[];
  },
  whole: (answer: Answer) => ({
    id: "c-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    usage,
    choices: [
      {
        index: 0,
        finish_reason: (answer.toolCalls ?? []).length > 0 ? "tool_calls" : "stop",
        message: {
          role: "assistant",
          content: joined(answer),
          tool_calls: answer.toolCalls?.map(({ id, name, input }) => ({
            id,
            type: "function",
            function: { name, arguments: input },
          })),
        },
      },
    ],
  }),
};

const messages = {
  events: ({ texts = [], toolCalls = [] }: Answer): SseEvent[] => {
    const event = (type: string, more: object): SseEvent => [type, { type, ...more }];
    const block = (index: number, content_block: object, deltas: readonly object[]) => [
      event("content_block_start", { index, content_block }),
      ...deltas.map((delta) => event("content_block_delta", { index, delta })),
      event("content_block_stop", { index }),
    ];
    const message = { id: "m-1", type: "message", role: "assistant", model: "m", content: [], usage };
    const tools = toolCalls.flatMap(({ id, name, input }, at) =>
      block(at + 2, { type: "tool_use", id, name, input: {} }, [
        { type: "input_json_delta", partial_json: input },
      ]),
    );
    return [
      event("message_start", { message: { ...message, stop_reason: null, stop_sequence: null } }),
      ...block(0, { type: "thinking", thinking: "", signature: "" }, [
        { type: "thinking_delta", thinking: THOUGHT },
      ]),
      ...block(
        1,
        { type: "text", text: "" },
        texts.map((text) => ({ type: "text_delta", text })),
      ),
      ...tools,
      event("message_delta", {
        delta: { stop_reason: tools.length > 0 ? "tool_use" : "end_turn", stop_sequence: null },
        usage,
      }),
      event("message_stop", {}),
    ];
  },
  whole: (answer: Answer) => ({
    id: "m-1",
    type: "message",
    role: "assistant",
    model: "m",
    stop_reason: (answer.toolCalls ?? []).length > 0 ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage,
    content: [
      { type: "thinking", thinking: THOUGHT, signature: "s" },
      { type: "text", text: joined(answer) },
      ...(answer.toolCalls ?? []).map(({ id, name, input }) => ({
        type: "tool_use",
        id,
        name,
        input: JSON.parse(input),
      })),
    ],
  }),
};

const responses = {
  events: (answer: Answer): SseEvent[] => {
    let sequence_number = 0;
    const event = (type: string, more: object): SseEvent => {
      sequence_number += 1;
      return [type, { type, sequence_number, ...more }];
    };
    const at = { item_id: "msg-1", output_index: 0, content_index: 0 };
    const item = { id: "msg-1", type: "message", role: "assistant", status: "in_progress", content: [] };
    return [
      event("response.created", { response: { ...responses.whole({}), status: "in_progress", output: [] } }),
      event("response.output_item.added", { output_index: 0, item }),
      ...(answer.texts ?? []).map((delta) =>
        event("response.output_text.delta", { ...at, delta, logprobs: [] }),
      ),
      event("response.output_item.done", { output_index: 0, item: responses.whole(answer).output[0] }),
      event("response.completed", { response: responses.whole(answer) }),
    ];
  },
  whole: (answer: Answer) => ({
    id: "r-1",
    object: "response",
    created_at: 1,
    status: "completed",
    model: "m",
    usage,
    output: [
      {
        id: "msg-1",
        type: "message",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: joined(answer), annotations: [] }],
      },
    ],
  }),
};
