/** Reads prompts that are messages in JSON, such as the body of a call to a model. */
import { isJsonWithinLimits } from "@adrelay/contract";
import { isUsersName, type Turn } from "./speakers.ts";

/** More levels than any message has. It bounds the recursion. */
const DEPTH_MAX = 50;
/** What a message takes at least besides its text. It bounds how many short messages are read. */
const MESSAGE_CHARS = 20;

/** All texts of one message, or of what lies between two messages. */
interface MessageTexts {
  readonly isUser: boolean;
  /** Whether its role is a known name. */
  readonly isNamed: boolean;
  readonly isOutside?: boolean;
  readonly texts: string[];
}

/**
 * The turns of a prompt that is messages in JSON. The members of a message may come in any order. Texts outside of messages count as
 * the user's. A role that nobody is called by, such as a tool's, belongs to who spoke before. Undefined if the prompt isn't JSON, or
 * if no message is the user's.
 *
 * @param charsEnd of a longer prompt, as many characters of the beginning and of the end are read
 */
export function turnsOfMessages(prompt: string, charsEnd = Number.POSITIVE_INFINITY): Turn[] | undefined {
  const value = parseJson(prompt);
  const messages: MessageTexts[] = [];
  if (value === undefined || !addMessages(value, messages)) {
    return undefined;
  }
  const isTranscript = messages.some(({ isUser, isNamed }) => isUser && isNamed);
  const turns = messages.map(({ isUser, texts }) => ({ isUser, text: texts.join("\n") }));
  return isTranscript ? endsOf(turns, charsEnd).filter(({ text }) => text.trim() !== "") : undefined;
}

function parseJson(text: string): unknown {
  // The check of the request's body saw the prompt as one text.
  if (!/^\s*[[{]/.test(text) || !isJsonWithinLimits(Buffer.from(text))) {
    return undefined;
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** False if the value has too many levels. `message`: the one that it is part of. */
function addMessages(value: unknown, messages: MessageTexts[], message?: MessageTexts, depth = 0): boolean {
  if (typeof value === "string") {
    (message ?? lastOutside(messages)).texts.push(value);
    return true;
  }
  if (typeof value !== "object" || value === null) {
    return true;
  }
  const { role, ...others }: { readonly role?: unknown } = { ...value };
  const own = typeof role === "string" ? newMessage(role, messages) : message;
  const members = Object.values(others);
  return depth < DEPTH_MAX && members.every((member) => addMessages(member, messages, own, depth + 1));
}

function newMessage(role: string, messages: MessageTexts[]): MessageTexts {
  const named = isUsersName(role);
  const message = {
    isUser: named ?? messages.at(-1)?.isUser ?? true,
    isNamed: named !== undefined,
    texts: [],
  };
  messages.push(message);
  return message;
}

/** For a text outside of messages. */
function lastOutside(messages: MessageTexts[]): MessageTexts {
  const last = messages.at(-1);
  if (last?.isOutside === true) {
    return last;
  }
  const outside = { isUser: true, isNamed: false, isOutside: true, texts: [] };
  messages.push(outside);
  return outside;
}

/** The turns with only as many characters of the beginning and of the end of them all. */
function endsOf(turns: readonly Turn[], charsEnd: number): Turn[] {
  const total = turns.reduce((sum, { text }) => sum + text.length + MESSAGE_CHARS, 0);
  if (total <= 2 * charsEnd) {
    return [...turns];
  }
  let from = 0;
  return turns.map(({ isUser, text }) => {
    const head = text.slice(0, Math.max(0, charsEnd - from));
    const tail = text.slice(Math.max(0, total - charsEnd - from));
    from += text.length + MESSAGE_CHARS;
    return { isUser, text: tail === text ? text : `${head}\n${tail}` };
  });
}
