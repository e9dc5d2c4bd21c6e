/** Decides what the model answers. It has no model behind it: keywords in the user's text choose among a few answers. */
import type { Ask, OfferedTool, Reply, ToolCall } from "./ask.ts";
import { readPrompt, type SponsoredProduct } from "./sponsored-product.ts";

/** Words in the user's text that ask for something other than a text. docs/demo-model.md lists them. */
const KEYWORDS = {
  tool: /use the tool/i,
  twoTools: /two tools/i,
  /** The ids of calls are `name:0`, `name:1`, and the same in each answer, as some models have them. */
  numberedCalls: /number the calls/i,
  /** With a text before the calls of the tools. */
  sayFirst: /say so first/i,
  reasoning: /think first/i,
  pause: /pause the turn/i,
  approval: /ask for approval/i,
  refusal: /refuse this/i,
  withoutAd: /leave the ad out/i,
} as const;

/** How many times tools are called before the text comes. */
const ROUNDS = /in ([1-9]) rounds/i;

const REASONING = "The user wants advice. I name what matters, compare, and keep it short.";
const REFUSAL = "I can't help with that.";
const BEFORE_TOOLS = "Let me look that up.";

const BEGINNING =
  "Start with what matters most to you, and write down the two or three things that you won't give up. Then compare a few options by these alone, and leave the rest of the feature lists unread.";
const END =
  "Before you decide, try the favourite for a few days if you can, and check how easily you can return it. If two options are close, take the simpler one.";

/** What a test asks for in place of the canned text. */
export interface Filler {
  readonly events: number;
  readonly sizeChars: number;
  /** Each piece begins with it and with the number of the piece. Undefined: all pieces are alike. */
  readonly mark?: string;
}

export function decideReply(ask: Ask, filler?: Filler): Reply {
  const { userText, product } = readPrompt(ask.prompt);
  const isAskedFor = (keyword: keyof typeof KEYWORDS) => KEYWORDS[keyword].test(userText);
  const reasoning = isAskedFor("reasoning") ? REASONING : "";
  if (isAskedFor("refusal")) {
    return { reasoning, texts: [], end: { kind: "refusal", reason: REFUSAL } };
  }
  const before = isAskedFor("sayFirst") ? piecesOr(filler, BEFORE_TOOLS) : [];
  const calls = decideCalls(ask, {
    one: isAskedFor("tool"),
    two: isAskedFor("twoTools"),
    areNumbered: isAskedFor("numberedCalls"),
    rounds: Number(ROUNDS.exec(userText)?.[1] ?? 1),
  });
  if (calls.length > 0) {
    return { reasoning, texts: before, end: { kind: "tool_calls", calls } };
  }
  for (const kind of ["pause", "approval"] as const) {
    if (isAskedFor(kind) && ask.stepsBefore === 0) {
      return { reasoning, texts: before, end: { kind } };
    }
  }
  const texts = piecesOr(filler, textWith(isAskedFor("withoutAd") ? undefined : product));
  return { reasoning, texts, end: { kind: "complete" } };
}

interface WantedCalls {
  readonly one: boolean;
  readonly two: boolean;
  readonly areNumbered: boolean;
  readonly rounds: number;
}

function decideCalls(ask: Ask, wanted: WantedCalls): ToolCall[] {
  const [first, second = first] = ask.tools;
  const isWanted = wanted.one || wanted.two || ask.toolChoice === "forced";
  if (
    first === undefined ||
    second === undefined ||
    ask.stepsBefore >= wanted.rounds ||
    ask.toolChoice === "none" ||
    !isWanted
  ) {
    return [];
  }
  return (wanted.two ? [first, second] : [first]).map((tool, at) => ({
    id: wanted.areNumbered ? `${tool.name}:${at}` : undefined,
    name: tool.name,
    input: inputOf(tool),
  }));
}

function inputOf({ parameters }: OfferedTool): string {
  const { properties = {}, required } = Object(parameters);
  const names = Array.isArray(required) ? required.map(String) : [];
  const input = Object.fromEntries(names.map((field) => [field, exampleOf(Object(properties)[field])]));
  return JSON.stringify(input);
}

/** A value that a schema of one field allows. */
function exampleOf(schema: unknown): unknown {
  const { type, enum: choices } = Object(schema);
  if (Array.isArray(choices)) {
    return choices[0];
  }
  switch (type) {
    case "number":
    case "integer":
      return 1;
    case "boolean":
      return true;
    case "array":
      return [];
    case "object":
      return {};
    default:
      return "Lisbon";
  }
}

/** The canned text. It does what our ad server's instructions ask: the exact name once, marked as an ad, and its link. */
function textWith(product: SponsoredProduct | undefined): string {
  const paragraphs = product === undefined ? [BEGINNING, END] : [BEGINNING, mentionOf(product), END];
  return paragraphs.join("\n\n");
}

function mentionOf({ name, advertiser, description, landingUrl }: SponsoredProduct): string {
  const maker = advertiser === "" ? "" : ` by ${advertiser}`;
  const linked = landingUrl === "" ? name : `[${name}](${landingUrl})`;
  return `One option to look at: ${linked}${maker} (Sponsored). ${description}`.trim();
}

const piecesOr = (filler: Filler | undefined, text: string) =>
  filler === undefined ? piecesOf(text) : fill(filler);

/** Word by word, as models stream. Joined, the pieces are the text. */
function piecesOf(text: string): string[] {
  return text.match(/\S+\s*/g) ?? [];
}

function fill({ events, sizeChars, mark }: Filler): string[] {
  const piece = "lorem ipsum dolor sit amet ".repeat(Math.ceil(sizeChars / 27)).slice(0, sizeChars);
  const pieceAt = (at: number) => (mark === undefined ? piece : `${mark}.${at} ${piece}`.slice(0, sizeChars));
  return Array.from({ length: events }, (_, at) => pieceAt(at));
}
