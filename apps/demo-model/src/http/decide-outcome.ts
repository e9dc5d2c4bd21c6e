/** What a call is answered: a stream, or JSON. It knows all paths of the demo model. */
import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { type Ask, tokensOf } from "../answer/ask.ts";
import { decideReply } from "../answer/decide-reply.ts";
import { readPrompt } from "../answer/sponsored-product.ts";
import { chatCompletions } from "../dialects/chat-completions.ts";
import type { AskResult, Dialect, SseEvent } from "../dialects/dialect.ts";
import { countTokens, messages } from "../dialects/messages.ts";
import { responses } from "../dialects/responses.ts";
import type { CallFaults } from "../faults/call-faults.ts";
import { type Api, type ApiError, formatError } from "./api-errors.ts";
import { formatEmbeddings, formatModel, formatModels } from "./small-answers.ts";

/** A call whose body has been read. */
export interface ModelCall {
  readonly method: string;
  readonly path: string;
  readonly api: Api;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  /** The parsed body; undefined if it is no JSON. */
  readonly body: unknown;
}

export type Outcome =
  | {
      readonly kind: "json";
      readonly status: number;
      readonly value: object;
      /** The text for the user in it. */
      readonly text?: string;
      readonly headers?: Record<string, string>;
    }
  | {
      readonly kind: "stream";
      readonly events: Iterable<SseEvent>;
      readonly errorEvent: () => SseEvent;
      readonly headers: Record<string, string>;
    };

interface Route {
  readonly method: "GET" | "POST";
  decide(call: ModelCall, faults: CallFaults): Outcome;
}

/** By it, a caller finds out which prompt has reached the model. */
const PROMPT_HEADER = "X-Demo-Prompt-SHA256";

const MODEL_PATH = /^\/v1\/models\/([\w.:-]+)$/;

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["/v1/chat/completions", surface(chatCompletions)],
  ["/v1/responses", surface(responses)],
  ["/v1/messages", surface(messages)],
  ["/v1/messages/count_tokens", { method: "POST", decide: decideCount }],
  ["/v1/embeddings", { method: "POST", decide: decideEmbeddings }],
  ["/v1/models", { method: "GET", decide: ({ api }) => json(formatModels(api)) }],
]);

/** Decides by the call alone. The faults are those that change what is answered, not how it is sent. */
export function decideOutcome(call: ModelCall, faults: CallFaults): Outcome {
  const { api, method, path, headers } = call;
  const route = routeOf(path);
  if (faults.status !== undefined) {
    return failed(api, { status: faults.status, message: "The call asked for this status." });
  }
  if (route === undefined) {
    return failed(api, { status: 404, message: `Invalid URL (${method} ${path})` });
  }
  if (method !== route.method) {
    const allow = { Allow: route.method };
    return failed(api, { status: 405, message: `Not allowed to ${method} on ${path}`, headers: allow });
  }
  if (!hasKey(api, headers)) {
    return failed(api, { status: 401, message: "You didn't provide an API key." });
  }
  if (api === "anthropic" && headers["anthropic-version"] === undefined) {
    return failed(api, { status: 400, message: "anthropic-version: header is required" });
  }
  if (method === "POST" && call.body === undefined) {
    return failed(api, { status: 400, message: "We could not parse the JSON body of your request." });
  }
  return route.decide(call, faults);
}

/** A name for log lines, which have no text of a caller, and so no unknown path. */
export function operationOf(path: string): string {
  return ROUTES.has(path) ? path.slice("/v1/".length) : "other";
}

/** An error in the form of the interface. */
export function failed(api: Api, error: ApiError): Outcome {
  const { status, headers = {} } = error;
  return { kind: "json", status, value: formatError(api, error), headers };
}

const json = (value: object): Outcome => ({ kind: "json", status: 200, value });

function routeOf(path: string): Route | undefined {
  const model = MODEL_PATH.exec(path)?.[1];
  return model === undefined
    ? ROUTES.get(path)
    : { method: "GET", decide: ({ api }) => json(formatModel(api, model)) };
}

/** Any key will do, where the provider's clients send it. */
function hasKey(api: Api, headers: IncomingHttpHeaders): boolean {
  const isBearer = /^Bearer\s+\S/i.test(headers.authorization ?? "");
  return isBearer || (api === "anthropic" && (headers["x-api-key"] ?? "") !== "");
}

/** One of the three interfaces to which text is generated. */
function surface(dialect: Dialect): Route {
  return {
    method: "POST",
    decide: (call, faults) =>
      withAsk(dialect, call, (ask) => {
        const { enhancedStatus: status, filler, usageAfterEnd = false } = faults;
        if (status !== undefined && readPrompt(ask.prompt).product !== undefined) {
          return failed(dialect.api, {
            status,
            message: "The call asked for this answer to a prompt with an ad.",
          });
        }
        const reply = decideReply(ask, filler);
        const headers = { [PROMPT_HEADER]: hash("sha256", ask.prompt) };
        return ask.isStream
          ? {
              kind: "stream",
              events: dialect.formatEvents(ask, reply, { usageAfterEnd }),
              errorEvent: dialect.errorEvent,
              headers,
            }
          : {
              kind: "json",
              status: 200,
              value: dialect.formatAnswer(ask, reply),
              text: reply.texts.join(""),
              headers,
            };
      }),
  };
}

function withAsk(
  { api, parseAsk }: Pick<Dialect, "api" | "parseAsk">,
  { body, bytes }: ModelCall,
  decide: (ask: Ask) => Outcome,
): Outcome {
  const asked: AskResult = parseAsk(body, bytes.length);
  return asked.kind === "ok"
    ? decide(asked.ask)
    : failed(api, { status: 400, message: asked.message, param: asked.param });
}

function decideCount(call: ModelCall): Outcome {
  return withAsk(countTokens, call, ({ requestChars }) => json({ input_tokens: tokensOf(requestChars) }));
}

function decideEmbeddings({ api, body, bytes }: ModelCall): Outcome {
  const value = formatEmbeddings(body, bytes.length);
  return value === undefined
    ? failed(api, { status: 400, message: "input: must be a text or a list of texts", param: "input" })
    : json(value);
}
