import { randomUUID } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { ACKNOWLEDGE_PATH } from "@adrelay/contract";

/** A POST that the provider received, with its body unchanged. */
interface SeenPost {
  readonly operation: "start" | "acknowledge";
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The parsed body; empty if it is no JSON object. */
  readonly fields: Record<string, unknown>;
  readonly atMs: number;
}

/** What the provider does with a POST. */
export type Behaviour =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Record<string, string>;
    }
  /** Answers with these bytes, which need not be JSON. */
  | {
      readonly kind: "raw";
      readonly status: number;
      readonly bytes: string | Buffer;
      readonly headers?: Record<string, string>;
    }
  /** Answers after a delay. */
  | { readonly kind: "late"; readonly delayMs: number; readonly answer: Behaviour }
  /** Answers once a promise is fulfilled. */
  | { readonly kind: "held"; readonly until: Promise<unknown>; readonly answer: Behaviour }
  /** Never answers. */
  | { readonly kind: "hang" }
  /** Closes the connection without an answer. */
  | { readonly kind: "reset" }
  /** Sends its headers, then one byte a second without end. */
  | { readonly kind: "drip" };

/** Decides what to do with a POST. `count` says how many POSTs of this operation came before for the same id. */
export type Script = (post: SeenPost, count: number) => Behaviour;

export interface ScriptedProvider {
  readonly url: string;
  readonly port: number;
  readonly posts: SeenPost[];
  /** The acknowledgments received for one ad response, in order. */
  acknowledgmentsOf(adResponseId: string): SeenPost[];
  onStart(script: Script): void;
  onAcknowledge(script: Script): void;
  close(): Promise<void>;
}

/** The answer to a filled injection. */
export function filled(overrides: Record<string, unknown> = {}): Behaviour {
  const body = {
    ad_request_id: randomUUID(),
    ad_response_id: randomUUID(),
    status: "ok",
    success: true,
    execution_time_ms: 1.5,
    enhanced_prompt: "a prompt with an ad",
    product_name: "Velmora Drift",
    ...overrides,
  };
  return { kind: "answer", status: 200, body };
}

/** The answer to an injection without an ad: 201 or 202. */
export function unfilled(status: 201 | 202): Behaviour {
  const body = {
    ad_request_id: randomUUID(),
    ad_response_id: randomUUID(),
    status: status === 201 ? "rejected" : "no_fill",
    success: false,
    execution_time_ms: 1.5,
    enhanced_prompt: null,
    product_name: null,
  };
  return { kind: "answer", status, body };
}

/** The answer to an acknowledgment. */
export function acknowledged(status: "ok" | "no_ad_used" | "recoverable_error" = "ok"): Behaviour {
  const body = { ad_ack_id: randomUUID(), status, success: status !== "recoverable_error" };
  return { kind: "answer", status: 200, body };
}

/** Starts a provider on a real socket. By default it fills every injection and accepts every acknowledgment. */
export async function startScriptedProvider(port = 0): Promise<ScriptedProvider> {
  const posts: SeenPost[] = [];
  const byId = new Map<string, SeenPost[]>();
  const ofSameId = (operation: SeenPost["operation"], fields: Record<string, unknown>): SeenPost[] => {
    const key = `${operation} ${String(fields["ad_response_id"]).toLowerCase()}`;
    const known = byId.get(key) ?? [];
    byId.set(key, known);
    return known;
  };
  let onStart: Script = () => filled();
  let onAcknowledge: Script = () => acknowledged();
  const server = createServer((request, response) => {
    const onPost = (post: SeenPost) => {
      const same = ofSameId(post.operation, post.fields);
      const before = same.length;
      same.push(post);
      posts.push(post);
      const script = post.operation === "start" ? onStart : onAcknowledge;
      behave(script(post, before), request, response);
    };
    // The caller may be killed before its request is complete.
    readPost(request).then(onPost, () => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address();
  const bound = typeof address === "object" && address !== null ? address.port : port;
  return {
    url: `http://127.0.0.1:${bound}`,
    port: bound,
    posts,
    acknowledgmentsOf: (id) => ofSameId("acknowledge", { ad_response_id: id }),
    onStart: (script) => {
      onStart = script;
    },
    onAcknowledge: (script) => {
      onAcknowledge = script;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function readPost(request: IncomingMessage): Promise<SeenPost> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(Buffer.from(chunk));
  }
  const body = Buffer.concat(chunks);
  const path = request.url ?? "";
  const operation = path.endsWith(ACKNOWLEDGE_PATH) ? "acknowledge" : "start";
  return {
    operation,
    path,
    headers: request.headers,
    body,
    fields: parseFields(body),
    atMs: performance.now(),
  };
}

function parseFields(body: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

function behave(behaviour: Behaviour, request: IncomingMessage, response: ServerResponse): void {
  switch (behaviour.kind) {
    case "answer":
      response.writeHead(behaviour.status, { "content-type": "application/json", ...behaviour.headers });
      response.end(behaviour.body === undefined ? "" : JSON.stringify(behaviour.body));
      return;
    case "raw":
      response.writeHead(behaviour.status, behaviour.headers).end(behaviour.bytes);
      return;
    case "late":
      setTimeout(() => behave(behaviour.answer, request, response), behaviour.delayMs);
      return;
    case "held":
      void behaviour.until.then(() => behave(behaviour.answer, request, response));
      return;
    case "hang":
      return;
    case "reset":
      request.socket.destroy();
      return;
    case "drip": {
      response.writeHead(200, { "content-type": "application/json" }).write("{");
      const timer = setInterval(() => response.write(" "), 1000);
      response.once("close", () => clearInterval(timer));
      return;
    }
    default:
      behaviour satisfies never;
  }
}
