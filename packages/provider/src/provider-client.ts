/**
 * Calls the ad service.
 *
 * 1. Every call has one time limit for all of it, from connecting to the last byte of the answer. So a provider that
 *    sends one byte a second can't delay anything. Time in which this process stood still doesn't count.
 * 2. A call that failed says whether the provider can have seen the request (its `stage`). It is `before_send` only if
 *    no byte of the request was written, and then none is written later either.
 * 3. Redirects are answers; they are not followed.
 * 4. What edges do to answers doesn't reach the caller: see answer-heads.ts and decode-answer.ts.
 */
import type { LookupFunction } from "node:net";
import {
  ACKNOWLEDGE_PATH,
  type AdAckId,
  IDEMPOTENCY_KEY_HEADER,
  INJECTION_PATH,
  REQUEST_ID_HEADER,
} from "@adrelay/contract";
import type { ProviderReply } from "@adrelay/core";
import type { ProviderAccount } from "./accounts.ts";
import { NO_PROXIES, type Proxies, proxyFor } from "./proxies.ts";
import { type RawReply, ReplyCollector } from "./reply-collector.ts";
import { prepareBody } from "./request-body.ts";
import { RunningClock } from "./running-clock.ts";
import { type Way, Ways } from "./ways.ts";

/** One call to a provider account. */
export interface ProviderCall {
  readonly account: ProviderAccount;
  /** Sent unchanged. */
  readonly body: string | Buffer;
  readonly requestId: string;
  /** Headers that pass the trace on, if there is a trace. */
  readonly traceHeaders?: Readonly<Record<string, string>>;
  /** Time limit of the whole call, from connecting to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Asked for each number of bytes of the answer before they are held. False: the answer is given up as `overloaded`. */
  readonly holdAnswer?: (bytes: number) => boolean;
}

/** The delivery of an acknowledgment; `adAckId` becomes its idempotency key. */
export interface AcknowledgeCall extends ProviderCall {
  readonly adAckId: AdAckId;
}

/** A call that runs until it is answered, fails or is given up. */
export interface RunningCall {
  /** Never rejects. */
  readonly reply: Promise<RawReply>;
  /** Whether the provider can have seen the request. */
  wasSent(): boolean;
  /** Whether the provider has been sent all of it. A long body is then no longer held. */
  isBodySent(): boolean;
  /** Ends the call early. A request that wasn't sent yet is never sent. */
  giveUp(): void;
}

/** The metric label of a reply: the class of its status (`2xx`), or why there is no answer. */
export function outcomeLabelOf(reply: ProviderReply): string {
  return reply.kind === "answered" ? `${Math.floor(reply.status / 100)}xx` : reply.code;
}

const INJECTION_ANSWER_BYTES_MAX = 8 * 1024 * 1024;
const ACKNOWLEDGE_ANSWER_BYTES_MAX = 256 * 1024;

/** The HTTP client for all provider accounts. Its connections are kept and used again. */
export class ProviderClient {
  readonly #proxies: Proxies;
  readonly #clock = new RunningClock();
  readonly #ways: Ways;
  readonly #known = new WeakMap<ProviderAccount, Way>();

  /** @param lookup finds the addresses of hosts, if not Node itself */
  constructor(proxies: Proxies = NO_PROXIES, lookup?: LookupFunction) {
    this.#proxies = proxies;
    this.#ways = new Ways(proxies, { allowH2: true }, lookup);
  }

  /** Requests an ad. The bytes of the answer are kept, so that they can be passed through. */
  startInjection(call: ProviderCall): RunningCall {
    return this.#post(INJECTION_PATH, call, INJECTION_ANSWER_BYTES_MAX, {});
  }

  /** Delivers an acknowledgment. Every attempt carries the same idempotency key (invariant 4). */
  async acknowledge(acknowledgment: AcknowledgeCall): Promise<ProviderReply> {
    const headers = { [IDEMPOTENCY_KEY_HEADER]: acknowledgment.adAckId };
    const call = this.#post(ACKNOWLEDGE_PATH, acknowledgment, ACKNOWLEDGE_ANSWER_BYTES_MAX, headers);
    return (await call.reply).reply;
  }

  /** Scheme, host and port of the proxy that leads to an account; undefined if it is called directly. */
  proxyOf({ url }: ProviderAccount): string | undefined {
    const proxy = proxyFor(this.#proxies, new URL(url));
    return proxy === undefined ? undefined : new URL(proxy).origin;
  }

  /** Ends the calls that still run and closes all connections. Later calls fail without being sent. */
  async stop(): Promise<void> {
    this.#clock.stop();
    await this.#ways.stop();
  }

  #post(path: string, call: ProviderCall, bytesMax: number, headers: Record<string, string>): RunningCall {
    const { account, requestId, traceHeaders, timeoutMs, holdAnswer: hold } = call;
    const { body, headers: bodyHeaders } = prepareBody(call.body);
    const { dispatcher, target } = this.#wayTo(account);
    const request = {
      ...target,
      path: target.path + path,
      method: "POST",
      body,
      headers: {
        "content-type": "application/json",
        ...bodyHeaders,
        "user-agent": "adrelay",
        ...target.headers,
        [account.apiKeyHeader]: account.apiKey,
        [REQUEST_ID_HEADER]: requestId,
        ...traceHeaders,
        ...headers,
      },
    } as const;
    const collector = new ReplyCollector({ bytesMax, timeoutMs, clock: this.#clock, hold });
    dispatcher.dispatch(request, collector);
    return {
      reply: collector.reply,
      wasSent: () => collector.wasSent,
      isBodySent: () => collector.isBodySent,
      giveUp: () => collector.giveUp("connection_lost"),
    };
  }

  #wayTo(account: ProviderAccount): Way {
    const known = this.#known.get(account);
    if (known !== undefined) {
      return known;
    }
    const way = this.#ways.find(new URL(account.url), account.tls);
    this.#known.set(account, way);
    return way;
  }
}
