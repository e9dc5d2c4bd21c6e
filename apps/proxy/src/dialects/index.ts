/** The forms of model calls that the proxy puts ads into. No dialect is translated into another. */
import type { DialectName } from "@adrelay/core";
import { chatCompletions } from "./chat-completions.ts";
import type { Dialect } from "./dialect.ts";
import { messages } from "./messages.ts";
import { responses } from "./responses.ts";

export { splice } from "./splice.ts";

const DIALECTS_BY_NAME: Readonly<Record<DialectName, Dialect>> = {
  chat_completions: chatCompletions,
  messages,
  responses,
};

/** The dialect that is spoken at a path, which comes without its query. Undefined for all other paths. */
export function dialectOf(path: string): Dialect | undefined {
  switch (path) {
    case "/v1/chat/completions":
      return chatCompletions;
    case "/v1/messages":
      return messages;
    case "/v1/responses":
      return responses;
    default:
      return undefined;
  }
}

/** A dialect by its name, for errors on paths that have none of their own. */
export function dialectNamed(name: DialectName): Dialect {
  return DIALECTS_BY_NAME[name];
}
