import type { ProviderReply } from "./provider-reply.ts";

/** A token and nothing longer: free text can echo what a user wrote (invariant 6), and so can a long number. */
const TOKEN = /^(?!.*\d{12})[A-Za-z0-9_.-]{1,64}$/;

/** The provider's own name for what was wrong: `code` of its problem body, if that is a plain token. */
export function publicErrorOf(reply: ProviderReply): string | undefined {
  if (reply.kind !== "answered" || typeof reply.body !== "object" || reply.body === null) {
    return undefined;
  }
  const { code }: { code?: unknown } = reply.body;
  return typeof code === "string" && TOKEN.test(code) ? code : undefined;
}
