/** What a call asks of the model, the same for every dialect. */
export interface Ask {
  readonly model: string;
  readonly isStream: boolean;
  /** The text of the last user message, as it came: an ad may be around it. */
  readonly prompt: string;
  readonly tools: readonly OfferedTool[];
  /** `forced`: the model must call a tool, whatever the user wrote. */
  readonly toolChoice: "auto" | "forced" | "none";
  /** How often tools have answered since the last user message, or the model has paused. 0 for a new message. */
  readonly stepsBefore: number;
  /** The caller has asked for the usage in the stream. Only one of the dialects leaves it out otherwise. */
  readonly wantsUsage: boolean;
  /** Length of the request as text, from which the usage is estimated. */
  readonly requestChars: number;
}

export interface OfferedTool {
  readonly name: string;
  /** JSON schema of its arguments. */
  readonly parameters: unknown;
}

/** What the model answers, before it is put into the form of a dialect. */
export interface Reply {
  /** Empty without reasoning. */
  readonly reasoning: string;
  /** The pieces of the text for the user; in a stream each is an event. */
  readonly texts: readonly string[];
  readonly end: ReplyEnd;
}

export type ReplyEnd =
  | { readonly kind: "complete" }
  | { readonly kind: "tool_calls"; readonly calls: readonly ToolCall[] }
  /** The model pauses while a tool of its own server works. Only Anthropic's dialect has this. */
  | { readonly kind: "pause" }
  /** The model wants to be allowed a tool of a remote server. Only Responses have this. */
  | { readonly kind: "approval" }
  | { readonly kind: "refusal"; readonly reason: string };

export interface ToolCall {
  /** Undefined: a random one in the form of the dialect. */
  readonly id: string | undefined;
  readonly name: string;
  /** As JSON. */
  readonly input: string;
}

/** Estimated tokens; four characters are one. */
export function tokensOf(chars: number): number {
  return Math.ceil(chars / 4);
}

/** Estimated tokens of what the model has written. */
export function answerTokens({ texts, end, reasoning }: Reply): number {
  const inputs = end.kind === "tool_calls" ? end.calls.reduce((sum, { input }) => sum + input.length, 0) : 0;
  return tokensOf(texts.reduce((sum, text) => sum + text.length, 0) + reasoning.length + inputs);
}
