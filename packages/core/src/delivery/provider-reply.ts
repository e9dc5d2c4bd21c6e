/**
 * What came of one call to a provider, before anybody judges it.
 *
 * `stage` says whether the provider can have seen the request, which decides whether a second try can
 * double it: `before_send` can't have arrived, `after_send` may have.
 */
export type ProviderReply =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** The body parsed as JSON; undefined if it is none. */
      readonly body: unknown;
      /** The Retry-After header as it came. */
      readonly retryAfter: string | undefined;
    }
  | { readonly kind: "failed"; readonly stage: "before_send" | "after_send"; readonly code: CallFailure };

/** Why there is no whole answer. Stable codes: they are shown to operators and stored with attempts. */
export type CallFailure = "timeout" | "unreachable" | "connection_lost" | "answer_too_large";

/** What came of a call, as metrics label it: the status' class (`2xx`), or why there is no answer. */
export function outcomeLabelOf(reply: ProviderReply): string {
  return reply.kind === "answered" ? `${Math.floor(reply.status / 100)}xx` : reply.code;
}
