/** What stands for angle brackets; quotes of French, German and East Asian texts count only as tags. */
const ANGLES: Readonly<Record<string, string>> = {
  "‹": "<",
  "›": ">",
  "〈": "<",
  "〉": ">",
  "⟨": "<",
  "⟩": ">",
  "❮": "<",
  "❯": ">",
  "˂": "<",
  "˃": ">",
  ᐸ: "<",
  ᐳ: ">",
  "⁄": "/",
  "∕": "/",
  "⧸": "/",
  "═": "=",
  "꞊": "=",
  ˋ: "`",
  "∼": "~",
  "♯": "#",
};
const LOOKALIKE = new RegExp(`[${Object.keys(ANGLES).join("")}]`, "gu");

const MARKUP: readonly (readonly [pattern: RegExp, message: string])[] = [
  [/<\s{0,3}[/!?%|]|[/?%|]\s{0,3}>|<\s{0,3}[a-z_][^<>]{0,80}>|[«《]\s{0,3}\//iu, "has a tag"],
  [/<!\[|\]\]>|<!--|-->/, "has a comment or a section of markup"],
  [/&(?:#\d{1,8}|#x[\da-f]{1,6}|[a-z]{2,8});/i, "has a character reference"],
  [/`{3,}|~{3,}|(?:` ?){3,}/, "has a code fence"],
  [/={3,}|-{3,}|_{3,}|\*{3,}|#{2,}|\+{4,}|\|{2,}/, "has a line of marks"],
  [/(?:^|[\n\r])[ \t>]{0,8}#{1,6}[ \t]/, "has a heading"],
  [/\]\s?\(|!\[|\[\[|\]\]|\{\{|\}\}|\$\{|\[\^/, "has a link or a placeholder of markup"],
  [/["']?\brole["']?\s{0,3}[:=]\s{0,3}["']|["']content["']\s{0,3}:/i, "has a message in JSON or YAML"],
  [/\[\/?inst\]|<<\/?sys>>|\bim_(?:start|end)\b|\bendoftext\b/i, "has a mark of a chat template"],
  [/\\(?:u[\da-f]{4}|x[\da-f]{2}|n|r)/i, "has an escape"],
];

/** A speaker before a colon, where a sentence begins. */
const SPEAKER =
  /(?:^|[\n\r.!?;|>-]\s{0,3})[[(*#\s]{0,6}(?:system|assistant|user|human|developer|instructions?|ai|bot|(?:system|developer|ai) (?:note|message|notice|prompt)|note to (?:ai|model))[\])*\s]{0,6}:/i;

/** Markup that could pass for a delimiter or a message; undefined if there is none. */
export function suspectMarkup(plain: string): string | undefined {
  const text = plain.replace(LOOKALIKE, (character) => ANGLES[character] ?? character);
  const found = MARKUP.find(([pattern]) => pattern.test(text));
  if (found !== undefined) {
    return found[1];
  }
  return SPEAKER.test(text) ? "has a speaker's name as chats have it" : undefined;
}
