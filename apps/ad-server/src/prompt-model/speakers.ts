/** Who speaks in a prompt, by the names that transcripts and messages give them. */

/** One speaker's words in a prompt. */
export interface Turn {
  /** Whether the user says it. A prompt that is no transcript is one turn of the user. */
  readonly isUser: boolean;
  readonly text: string;
}

/** Names of the user, as a pattern. */
export const USER =
  "user|human|me|customer|client|nutzer(?:in)?|benutzer(?:in)?|kund(?:e|in)|mensch|utilisateur|utilisatrice|humain|usuari[oa]|usu\u00e1ri[oa]|cliente?|human[oa]|उपयोगकर्ता|ग्राहक|ユーザー|利用者|人間";
/** Names of all others. */
export const OTHER =
  "assistant|ai|bot|chatbot|agent|model|system|gpt|llm|assistent(?:in)?|ki|assistante?|ia|asistente|assistente|sistema|syst\u00e8me|सहायक|सिस्टम|アシスタント|システム|ボット";

const IS_USER = new RegExp(`^(?:${USER})$`, "iu");
const IS_OTHER = new RegExp(`^(?:${OTHER})$`, "iu");

/** Whether a name is the user's; undefined if nobody is called so. */
export function isUsersName(name: string): boolean | undefined {
  if (IS_USER.test(name)) {
    return true;
  }
  return IS_OTHER.test(name) ? false : undefined;
}
