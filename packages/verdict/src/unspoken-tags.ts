/**
 * Names of tags around a model's reasoning, alone or as part of a longer name ("seed:think", "begin_of_thought"), in
 * the languages of the word vectors.
 */
const REASONING_WORDS =
  "think|thinking|thoughts?|reason|reasoning|reflect|reflection|reflexion|scratch|scratchpad|monologue|cot|analysis|rationale|critique|deliberation|planning|introspection|brainstorm|denken|gedanken|gedankengang|überlegung|überlegungen|nachdenken|begründung|pensée|pensées|réflexion|raisonnement|pensamiento|pensamientos|pensar|razonamiento|reflexión|pensamento|pensamentos|raciocínio|reflexão|सोच|विचार|तर्क|चिंतन|思考|推論|考え|考察";
const REASONING_NAME = new RegExp(
  `(?<![\\p{L}\\p{M}])(?:ant)?(?:${REASONING_WORDS})(?![\\p{L}\\p{M}])`,
  "iu",
);
/** Names that mean this only if they are the whole name. */
const INNER_NAME = /^(?:inner|internal|private|hidden|plan|system[_-]?reminder)$/i;
const TOOL_NAME =
  /^(?:\w+:)?(?:(?:tools?|functions?|plugin)_?(?:calls?|uses?|code|results?|response|responses|output|outputs|request|invocation|invoke|input)|tools?|function|invoke|python_tag|use_mcp_tool|function=.*|action(?:_input)?|observation|execute(?:_\w+)?|search_quer(?:y|ies))$/i;

/** Names of tools' tags that are also words of sentences and of code. */
const ORDINARY_WORD = /^(?:tools?|function|action|observation|invoke)$/;

/** Whether the name of a tool's tag says little, since it is also an ordinary word. */
export function isOrdinaryWord({ name }: Pick<Tag, "name">): boolean {
  return ORDINARY_WORD.test(name);
}

/** Whether the name of a tag is for reasoning. */
export function isReasoningName(name: string): boolean {
  return REASONING_NAME.test(name.replaceAll("_", " ")) || INNER_NAME.test(name);
}

const NAME = "[\\p{L}][\\p{L}\\p{M}\\p{N}:_.=\\u2581-]{0,60}";
/**
 * `<think>`, `<|think|>`, `<|think>` with the end `<think|>`, `<｜DSML｜invoke>`, `[THINK]`, `◁think▷` and their ends,
 * comments, and the backticks of code. The names of groups are repeated, since exactly one alternative applies.
 */
export const UNSPOKEN_TOKEN = new RegExp(
  [
    "(?<comment><!--)",
    `<(?<close>/?)(?:[|\\uff5c]\\w{1,20}[|\\uff5c])?(?<name>${NAME})(?:\\s[^<>]{0,500})?(?<!/)>`,
    `<[|\\uff5c](?<close>/?)(?<name>${NAME})[|\\uff5c]?>`,
    `<(?<name>${NAME})(?<closingBar>[|\\uff5c])>`,
    `\\u25c1(?<close>/?)(?<name>${NAME})\\u25b7`,
    `(?<bracket>\\[)(?<close>/?)(?<name>${NAME})\\](?!\\()`,
    "(?<fence>^ {0,3}(?:`{3,}|~{3,}))",
    "(?<ticks>`+)",
  ].join("|"),
  "gmu",
);

export interface Tag {
  readonly kind: "reasoning" | "tool";
  readonly name: string;
  readonly isEnd: boolean;
}

/** Where a tag is in the text, in characters. */
interface PlacedTag extends Tag {
  readonly start: number;
  readonly end: number;
}

/** Tags by what is looked for, the last one first, so that tags which were passed can be popped. */
type TagStacks = ReadonlyMap<string, PlacedTag[]>;

const BRACKET_END = new RegExp(`\\[/(${NAME})\\]`, "gu");

/**
 * Reads the tags of one text. Ends of parts must be asked for from the beginning to the end of the text: then all of them
 * together take a time that is linear in its length.
 */
export class TagReader {
  readonly #text: string;
  /** Names that the text has in the end of a tag in square brackets. */
  #bracketEnds: ReadonlySet<string> | undefined;
  #stacks: TagStacks | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  /** The tag of a match of UNSPOKEN_TOKEN; undefined if it is none, or not one around an unspoken part. */
  read({ groups }: RegExpExecArray): Tag | undefined {
    const written = groups?.["name"];
    if (written === undefined) {
      return undefined;
    }
    const plain = written.replaceAll("\u2581", "_");
    const name = plain.replace(/^(?:begin|start|end)(?:_of)?_|_(?:begin|start|end)$/i, "");
    const kind = TOOL_NAME.test(name) ? "tool" : isReasoningName(name) ? "reasoning" : undefined;
    const isEnd =
      groups?.["close"] === "/" || groups?.["closingBar"] !== undefined || /^end_|_end$/i.test(plain);
    // "[analysis]" is an ordinary word in brackets, unless its end follows.
    const isWord = groups?.["bracket"] !== undefined && !isEnd && !this.#isBracketTag(name);
    return kind === undefined || isWord ? undefined : { kind, name: name.toLowerCase(), isEnd };
  }

  /**
   * Where the part ends that a tag begins. Parts may be nested, but a model also writes about its own tags: if too few
   * ends follow, the last one counts. The end may have another name of the same kind, if no other end is there.
   *
   * @param from the end of the tag
   */
  partEnd({ kind, name }: Tag, from: number): number {
    this.#stacks ??= stacksOf(this.#placedTags());
    const named = passedTo(from, this.#stacks.get(`${kind} ${name}`));
    let depth = 1;
    for (let tag = named.pop(); tag !== undefined; tag = named.pop()) {
      depth += tag.isEnd ? -1 : 1;
      if (depth === 0 || named.length === 0) {
        return tag.end;
      }
    }
    return passedTo(from, this.#stacks.get(kind)).at(-1)?.end ?? this.#text.length;
  }

  /** Whether an end of the tag's kind follows. */
  hasEnd({ kind }: Tag, from: number): boolean {
    this.#stacks ??= stacksOf(this.#placedTags());
    return passedTo(from, this.#stacks.get(kind)).length > 0;
  }

  #isBracketTag(name: string): boolean {
    this.#bracketEnds ??= new Set(Array.from(this.#text.matchAll(BRACKET_END), ([, end = ""]) => end));
    return this.#bracketEnds.has(name) || /^(?:THINK|TOOL_CALLS)$/.test(name);
  }

  #placedTags(): PlacedTag[] {
    return Array.from(this.#text.matchAll(UNSPOKEN_TOKEN)).flatMap((match) => {
      const tag = this.read(match);
      return tag === undefined ? [] : [{ ...tag, start: match.index, end: match.index + match[0].length }];
    });
  }
}

/** The tags of each kind and name up to the last end, and the ends of each kind. */
function stacksOf(tags: readonly PlacedTag[]): TagStacks {
  const stacks = new Map<string, PlacedTag[]>();
  for (const tag of tags.toReversed()) {
    const keys = [`${tag.kind} ${tag.name}`, ...(tag.isEnd ? [tag.kind] : [])];
    for (const key of keys) {
      const stack = stacks.get(key) ?? [];
      if (tag.isEnd || stack.length > 0) {
        stack.push(tag);
        stacks.set(key, stack);
      }
    }
  }
  return stacks;
}

/** Pops the tags that begin before a place. */
function passedTo(place: number, stack: PlacedTag[] = []): PlacedTag[] {
  while ((stack.at(-1)?.start ?? place) < place) {
    stack.pop();
  }
  return stack;
}
