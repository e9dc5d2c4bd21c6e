/**
 * Asks for an ad. It never rejects and is bounded in time, whatever the relay and the network do.
 *
 * An ad that comes after the time limit was sold and won't be shown. The client waits a little for it and acknowledges it with
 * an empty text, so that it isn't missed.
 */
import { overdue, RelayError } from "./errors.ts";
import { type Connection, errorOf, type Message, type Reply, type RunningPost, startPost } from "./http.ts";
import type { Ad, NoAd } from "./injection.ts";
import { ABORTED, untilLimit } from "./limits.ts";
import { INJECTION_PATH, type InjectionRequest, parseFilled } from "./wire.ts";

interface InjectInput {
  readonly request: InjectionRequest;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly traceHeaders: Readonly<Record<string, string>>;
}

/** An ad, or why there is none. */
type InjectOutcome = { readonly ad: Ad } | (NoAd & { readonly ad?: undefined });

/** How long to wait for an ad after the caller has gone on without it. The relay has a limit itself, so it answers soon. */
const LATE_AD_MS = 5000;
/** How many such calls there may be: a relay that hangs must not pile them up. */
const LATE_CALLS_MAX = 64;

export type Inject = (input: InjectInput) => Promise<InjectOutcome>;

/** `onLateAd` is called with each ad that came too late. */
export function makeInject(connection: Connection, onLateAd: (ad: Ad) => void): Inject {
  let lateCalls = 0;
  const listenLate = async (post: RunningPost) => {
    if (lateCalls < LATE_CALLS_MAX) {
      lateCalls += 1;
      const reply = await untilLimit(post.reply, LATE_AD_MS);
      lateCalls -= 1;
      const { ad } = typeof reply === "symbol" ? {} : outcomeOf(reply);
      if (ad) {
        onLateAd(ad);
      }
    }
    post.abort();
  };
  return async ({ request, timeoutMs, signal, traceHeaders }) => {
    const body = writeJson(request);
    if (typeof body !== "string") {
      return { reason: "unsendable", error: body };
    }
    if (signal?.aborted) {
      return { reason: "aborted" };
    }
    const post = startPost(connection, messageOf(body, timeoutMs, traceHeaders));
    const reply = await untilLimit(post.reply, timeoutMs, signal);
    if (typeof reply !== "symbol") {
      return outcomeOf(reply);
    }
    void listenLate(post);
    return reply === ABORTED
      ? { reason: "aborted" }
      : {
          reason: "timeout",
          error: overdue("relay", timeoutMs),
        };
  };
}

function writeJson(request: InjectionRequest): string | RelayError {
  try {
    return JSON.stringify(request);
  } catch (cause) {
    return new RelayError("unsendable", "the request can't be written as JSON", { cause });
  }
}

/** The relay is given a little less time than there is, so that its answer arrives in time. */
function messageOf(body: string, timeoutMs: number, traceHeaders: InjectInput["traceHeaders"]): Message {
  const relayMs = Math.floor(timeoutMs - Math.min(250, timeoutMs / 4));
  const limit = String(Math.min(Math.max(relayMs, 1), 30_000));
  return { path: INJECTION_PATH, body, headers: { ...traceHeaders, "X-Adrelay-Timeout-Ms": limit } };
}

function outcomeOf(reply: Reply): InjectOutcome {
  if (reply.kind === "failed") {
    return { reason: "unreachable", error: reply.error };
  }
  const { status, headers, body } = reply;
  const filled = status === 200 ? parseFilled(body) : undefined;
  if (filled !== undefined) {
    const byMs = Date.parse(headers.get("x-adrelay-acknowledge-by") ?? "");
    // Without a date it is NaN.
    return { ad: { ...filled, acknowledgeBy: byMs ? new Date(byMs) : undefined } };
  }
  switch (status) {
    case 201:
      return { reason: "rejected" };
    case 202: {
      const fallback = headers.get("x-adrelay-fallback");
      return fallback === null ? { reason: "no_fill" } : { reason: "fallback", fallback };
    }
    default:
      return {
        reason: status >= 400 && status < 500 ? "refused" : "failed",
        error: errorOf(reply),
      };
  }
}
