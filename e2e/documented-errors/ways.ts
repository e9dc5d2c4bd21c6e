/** How each error is made, by its code. A way resolves to the status and the code of the answer, such as `404 not_found`. */
import { API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import {
  acknowledged,
  type Behaviour,
  eventually,
  filled,
  type RelayCaller,
  relayCaller,
  TEST_INJECTION,
  unfilled,
  unknownId,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { expect } from "vitest";
import type { DocumentName, Operation } from "./documented.ts";
import { AD_SERVER_KEYS, type ErrorStack, METRICS_TOKEN, REPORT_KEY, VIEW_TOKEN } from "./error-stack.ts";
import { codeIn, holdRequest, sendRaw } from "./raw-request.ts";

interface Call {
  /** In the place of each parameter of the path, and in the body. */
  readonly id?: string;
  readonly body?: string;
  readonly query?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly origin?: string;
}

type Way = () => Promise<string>;

/** Errors that operations answer while Redis is away. Their ways don't take it away themselves. */
export const WHILE_REDIS_IS_AWAY = ["queue_unavailable", "storage_unavailable", "-"];

const GUESSES = 6;
const NOBODY = { [API_KEY_HEADER]: "key-of-nobody", Authorization: "Bearer token-of-nobody" };

/** Bodies that a handler takes. */
const bodyOf = (operation: Operation, id: string): unknown => {
  switch (operation.id) {
    case "startInjection":
      return TEST_INJECTION;
    case "acknowledge":
      return { ad_response_id: id, llm_response: "An answer." };
    case "adoptPublisher":
      return { to: "alpha" };
    case "erase":
      return { ad_response_id: id, reason: "A test." };
    case "startReplay":
      return { publisher: "beta" };
    case "startDiscard":
      return { publisher: "beta", why: "A test." };
    default:
      return { reason: "A test." };
  }
};

export class Ways {
  readonly #stack: ErrorStack;
  #calls = 0;

  constructor(stack: ErrorStack) {
    this.#stack = stack;
  }

  /** Undefined if nothing makes this error. */
  wayTo(operation: Operation, code: string): Way | undefined {
    return this.#ofState(operation)[code] ?? this.#ofAny(operation)[code];
  }

  #originOf(document: DocumentName): string {
    const { relay, adServer } = this.#stack;
    return { public: relay.gatewayUrl, admin: relay.gatewayOpsUrl, "ad-server": adServer.url }[document];
  }

  #headersOf({ document, id }: Operation): Readonly<Record<string, string>> {
    const { keyOf, adminToken } = this.#stack;
    return {
      public: { [API_KEY_HEADER]: keyOf("alpha") },
      admin: { Authorization: `Bearer ${id === "getMetrics" ? METRICS_TOKEN : adminToken}` },
      "ad-server": { [API_KEY_HEADER]: id === "getBudgets" ? REPORT_KEY : AD_SERVER_KEYS.good },
    }[document];
  }

  /** Refused tokens slow their address down, so each call has another one. */
  #nextAddress(): string {
    this.#calls += 1;
    return `10.0.${this.#calls >> 8}.${this.#calls & 255}`;
  }

  async #call(operation: Operation, call: Call = {}): Promise<string> {
    const { id = unknownId(), query = "", headers = {}, method = operation.method } = call;
    const path = operation.path.replace("{publisher}", "gone").replaceAll(/\{\w+\}/g, id);
    const own = operation.hasBody ? JSON.stringify(bodyOf(operation, id)) : undefined;
    const body = call.body ?? own;
    const response = await fetch((call.origin ?? this.#originOf(operation.document)) + path + query, {
      method,
      headers: {
        "Content-Type": "application/json",
        "X-Forwarded-For": this.#nextAddress(),
        ...this.#headersOf(operation),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    return `${response.status} ${codeIn(await response.text())}`;
  }

  #raw({ document, method, path }: Operation, head: string): Promise<string> {
    const target = path.replaceAll(/\{\w+\}/g, unknownId());
    return sendRaw(this.#originOf(document), `${method} ${target} HTTP/1.1\r\n${head}`);
  }

  /** What is made in the same way for any operation that can answer it. */
  #ofAny(operation: Operation): Readonly<Record<string, Way>> {
    const call = (more?: Call) => () => this.#call(operation, more);
    const raw = (head: string) => () => this.#raw(operation, head);
    const { small, slowAdServer, keyOf } = this.#stack;
    return {
      bad_request: raw("\r\n"),
      headers_too_large: raw(`Host: localhost\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`),
      request_timeout: raw("Host: localhost\r\nX-Half: "),
      host_not_allowed: raw("Host: rebound.example\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
      method_not_allowed: call({ method: "PATCH" }),
      unauthenticated: call({ headers: NOBODY }),
      invalid_json: call({ body: "{" }),
      unsupported_media_type: call({ headers: { "Content-Type": "text/plain" } }),
      payload_too_large: call({ body: `{"a":"${"x".repeat(2_000_000)}"}` }),
      validation_failed: operation.hasBody
        ? call({ body: '{"ad_response_id":1,"session_id":1,"reason":1,"prompt":1}' })
        : call({ id: "no-uuid", query: "?limit=none&from=none" }),
      // Without a token there is no admin API. Elsewhere it is the answer at an address that is none.
      not_found: call(operation.document === "admin" ? { origin: small.opsUrl } : { id: "a/b" }),
      forbidden: call({ headers: { Authorization: `Bearer ${VIEW_TOKEN}` }, query: "?publisher=beta" }),
      too_many_logins: () => this.#guessTokens(operation),
      unknown_ad_response: call(),
      unknown_replay: call(),
      unknown_discard: call(),
      key_revoked: call({ headers: { [API_KEY_HEADER]: AD_SERVER_KEYS.revoked } }),
      rate_limited:
        operation.document === "public"
          ? () => this.#again(operation, { headers: { [API_KEY_HEADER]: keyOf("tight") } })
          : () => this.#again(operation, { origin: slowAdServer.url }),
      overloaded: () =>
        operation.document === "ad-server" ? this.#besideHeld(operation) : this.#beside(operation),
      ...Object.fromEntries(WHILE_REDIS_IS_AWAY.map((code) => [code, call()])),
    };
  }

  /** What needs an ad response, a change or a provider in a certain state. */
  #ofState(operation: Operation): Readonly<Record<string, Way>> {
    const { keyOf } = this.#stack;
    const isAdServer = operation.document === "ad-server";
    const caller = isAdServer
      ? relayCaller(this.#originOf("ad-server"), AD_SERVER_KEYS.good)
      : relayCaller(this.#originOf("public"), keyOf("alpha"));
    const other = { [API_KEY_HEADER]: isAdServer ? AD_SERVER_KEYS.other : keyOf("beta") };
    const of = (make: (caller: RelayCaller) => Promise<string>, more: Call = {}) => {
      return async () => this.#call(operation, { ...more, id: await make(caller) });
    };
    return {
      other_publisher: of((by) => by.injectUntilFilled(), { headers: other }),
      not_acknowledgeable: of((by) => this.#injectWithoutAd(by)),
      already_acknowledged: of(deliver),
      acknowledgment_conflict: async () => {
        const id = await deliver(caller);
        const body = JSON.stringify({ ad_response_id: id, llm_response: "Another answer." });
        return this.#call(operation, { body });
      },
      not_dead: of(deliver),
      attempt_under_way: of((by) => this.#beginAttempt(by)),
      provider_unavailable: () => this.#whileProvider({ kind: "reset" }, operation),
      provider_timeout: () => this.#whileProvider({ kind: "hang" }, operation),
      replay_ended: () => this.#ofEnded("replays", operation),
      discard_ended: () => this.#ofEnded("discards", operation),
      storage_full: () => this.#whileFull(operation),
      ...(operation.id === "startInjection" && {
        validation_failed: () => this.#call(operation, { body: "[]" }),
        // The ad service's own refusal.
        "-": () => this.#whileProvider({ kind: "answer", status: 409 }, operation),
      }),
    };
  }

  /** The ad server has no ad for a prompt without a word that it knows. */
  async #injectWithoutAd(caller: RelayCaller): Promise<string> {
    this.#stack.provider.onStart(() => unfilled(201));
    const { body } = await caller.inject({}, { ...TEST_INJECTION, prompt: "Hello." });
    this.#stack.provider.onStart(() => filled());
    return String(body["ad_response_id"]);
  }

  async #beginAttempt(caller: RelayCaller): Promise<string> {
    const { provider } = this.#stack;
    provider.onAcknowledge(() => ({ kind: "hang" }));
    const id = await caller.injectUntilFilled();
    await caller.acknowledge(id, "An answer.", { headers: { Prefer: "respond-async" } });
    await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(1));
    provider.onAcknowledge(() => acknowledged());
    return id;
  }

  async #whileProvider(behaviour: Behaviour, operation: Operation): Promise<string> {
    this.#stack.provider.onStart(() => behaviour);
    const answer = await this.#call(operation);
    this.#stack.provider.onStart(() => filled());
    return answer;
  }

  /** A change without letters ends at once. */
  async #ofEnded(kind: "replays" | "discards", operation: Operation): Promise<string> {
    const headers = { ...this.#headersOf(operation), "Content-Type": "application/json" };
    const url = `${this.#originOf("admin")}/admin/v1/${kind}`;
    const body = JSON.stringify({ publisher: "beta", ...(kind === "discards" && { why: "A test." }) });
    const started = Object(await (await fetch(url, { method: "POST", headers, body })).json());
    const id = String(started.replay_id ?? started.discard_id);
    await eventually(async () => {
      const shown = Object(await (await fetch(`${url}/${id}`, { headers })).json());
      expect(shown.state).toBe("completed");
    });
    return this.#call(operation, { id });
  }

  async #whileFull(operation: Operation): Promise<string> {
    const redis = new Redis(this.#stack.redis.url);
    const id = await relayCaller(this.#originOf("public"), this.#stack.keyOf("alpha")).injectUntilFilled();
    await redis.config("SET", "maxmemory", "1mb");
    const answer = await this.#call(operation, { id });
    await redis.config("SET", "maxmemory", "0");
    redis.disconnect();
    return answer;
  }

  async #guessTokens(operation: Operation): Promise<string> {
    const headers = { ...NOBODY, "X-Forwarded-For": this.#nextAddress() };
    for (let guess = 0; guess < GUESSES; guess += 1) {
      await this.#call(operation, { headers });
    }
    return this.#call(operation, { headers });
  }

  /** More calls at once than the quota has room for. */
  async #again(operation: Operation, call: Call): Promise<string> {
    const answers = await Promise.all(Array.from({ length: 20 }, () => this.#call(operation, call)));
    return answers.find((answer) => answer.startsWith("429")) ?? answers.join(", ");
  }

  /** Beside a call that takes the only place. */
  async #beside(operation: Operation): Promise<string> {
    const { small, provider, keyOf } = this.#stack;
    provider.onStart(() => ({ kind: "hang" }));
    const ending = new AbortController();
    const before = provider.posts.length;
    const held = relayCaller(small.url, keyOf("alpha")).inject({ signal: ending.signal });
    await eventually(() => expect(provider.posts.length).toBeGreaterThan(before));
    const answer = await this.#call(operation, { origin: small.url });
    ending.abort();
    await held.catch(() => undefined);
    provider.onStart(() => filled());
    return answer;
  }

  /** Beside a call that the small ad server goes on reading. */
  async #besideHeld(operation: Operation): Promise<string> {
    const { url } = this.#stack.smallAdServer;
    const headers = { "Content-Type": "application/json", [API_KEY_HEADER]: AD_SERVER_KEYS.good };
    // The call of the case before may not have ended yet, and then refuses the one that is held.
    return eventually(async () => {
      const end = holdRequest(url, INJECTION_PATH, headers);
      const answer = await this.#call(operation, { origin: url }).finally(end);
      expect(answer).toMatch(/^503/);
      return answer;
    });
  }
}

async function deliver(caller: RelayCaller): Promise<string> {
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "An answer.", { headers: { Prefer: "wait=20" } });
  return id;
}
