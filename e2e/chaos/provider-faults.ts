/** How each fault of the provider changes an answer. */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import type { Random } from "@adrelay/testkit";
import type { ProviderFault } from "./fault.ts";

/** What the provider would answer if nothing went wrong. */
export interface NormalAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface ActiveFault {
  readonly how: ProviderFault;
  /** The share of calls that it hits, from 0 to 1. */
  readonly share: number;
}

/** The share of the acknowledgments that `many_403` and `waf_403` hit. */
const TARGETED_SHARE = 0.2;

/** A fault while it lasts. */
export class FaultOfAccount {
  readonly #active: ActiveFault;
  /** The one acknowledgment that `one_429` hits. */
  #victim: string | undefined;

  constructor(active: ActiveFault) {
    this.#active = active;
  }

  /** What goes wrong with this call. `id`: undefined if it is no acknowledgment. */
  hits(id: string | undefined, body: Buffer, random: Random): ProviderFault | undefined {
    const { how, share } = this.#active;
    return (this.#isHit(id, body) ?? random.chance(share)) ? how : undefined;
  }

  /** Undefined if chance decides. */
  #isHit(id: string | undefined, body: Buffer): boolean | undefined {
    switch (this.#active.how) {
      case "one_429":
        this.#victim ??= id;
        return id !== undefined && id === this.#victim;
      case "many_403":
        return id !== undefined && shareOf(id) < TARGETED_SHARE;
      case "waf_403":
        // It looks at the text only.
        return id !== undefined && shareOf(body) < TARGETED_SHARE;
      default:
        return undefined;
    }
  }
}

/** A number in [0, 1) that is always the same for the same text. */
function shareOf(text: string | Buffer): number {
  return (createHash("sha256").update(text).digest()[0] ?? 0) / 256;
}

interface Exchange {
  readonly fault: ProviderFault | undefined;
  readonly normal: NormalAnswer;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly random: Random;
}

const DRIP_INTERVAL_MS = 1000;
/** Usable values, nonsense, and a wait that is far too long. */
const RETRY_AFTERS = [
  "1",
  "0",
  "2",
  "soon",
  "-5",
  "1.5",
  "",
  "99999999999999",
  "Thu, 32 Foo 2026 99:99:99 GMT",
];

export function answerWithFault(exchange: Exchange): void {
  const { fault, normal, request, response, random } = exchange;
  switch (fault) {
    case undefined:
      send(response, normal);
      return;
    case "hang":
      return;
    case "reset":
    case "lost_answer":
      request.socket.destroy();
      return;
    case "drip":
      drip(response);
      return;
    case "garbage":
      garble(response, random);
      return;
    case "slow_headers":
      setTimeout(() => send(response, normal), random.integer(50, 2500));
      return;
    case "half_body":
      sendHalf(exchange);
      return;
    case "keep_alive_reset":
      send(response, normal);
      response.once("finish", () => setTimeout(() => request.socket.destroy(), random.integer(0, 30)));
      return;
    case "http_500":
      response.writeHead(500).end("oops");
      return;
    case "http_503":
      response.writeHead(503, { "retry-after": retryAfter(random) }).end();
      return;
    case "http_429":
      response.writeHead(429, random.chance(0.5) ? { "retry-after": "1" } : {}).end();
      return;
    case "http_401":
      response.writeHead(random.pick([401, 403])).end();
      return;
    case "gzip":
      sendCompressed(exchange);
      return;
    case "continue":
      response.writeContinue();
      send(response, normal);
      return;
    case "edge_404":
    case "edge_login":
    case "one_429":
    case "many_403":
    case "waf_403":
      refuse(fault, exchange);
      return;
    case "recoverable":
      send(response, {
        status: 200,
        body: {
          ad_ack_id: "3f2b8c1e-9d4a-4c6b-8f10-0a1b2c3d4e5f",
          status: "recoverable_error",
          success: false,
        },
      });
      return;
    default:
      fault satisfies never;
  }
}

function send(response: ServerResponse, { status, body }: NormalAnswer): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** What an edge answers in place of the provider, and what the provider answers to some acknowledgments only. */
function refuse(
  fault: "edge_404" | "edge_login" | "one_429" | "many_403" | "waf_403",
  { response, random }: Exchange,
): void {
  switch (fault) {
    case "edge_404":
      response.writeHead(404, { "content-type": "text/plain" }).end("404 page not found\n");
      return;
    case "edge_login":
      sendLogIn(response, random);
      return;
    case "one_429":
      response.writeHead(429, { "retry-after": "60" }).end();
      return;
    case "many_403":
      send(response, { status: 403, body: { code: "forbidden" } });
      return;
    case "waf_403":
      response.writeHead(random.pick([403, 406]), HTML).end("<html><h1>Request blocked</h1></html>");
      return;
    default:
      fault satisfies never;
  }
}

const HTML = { "content-type": "text/html" };

function sendLogIn(response: ServerResponse, random: Random): void {
  if (random.chance(0.5)) {
    response.writeHead(302, { ...HTML, location: "https://example.net/login" }).end();
  } else {
    response.writeHead(200, HTML).end("<html><h1>Log in</h1></html>");
  }
}

/** Nobody has asked for it. */
function sendCompressed({ normal, response, random }: Exchange): void {
  const [coding, compress] = random.pick([
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
    ["deflate", deflateSync],
  ] as const);
  const headers = { "content-type": "application/json", "content-encoding": coding };
  response.writeHead(normal.status, headers).end(compress(JSON.stringify(normal.body)));
}

function drip(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" }).write("{");
  const timer = setInterval(() => response.write(" "), DRIP_INTERVAL_MS);
  response.once("close", () => clearInterval(timer));
}

function garble(response: ServerResponse, random: Random): void {
  const bytes = random.pick([
    "<html>welcome</html>",
    "",
    "null",
    "[]",
    '{"status":"ok"',
    '{"status":7}',
    "\u0000",
  ]);
  response.writeHead(200, { "content-type": random.pick(["text/html", "application/json"]) }).end(bytes);
}

/** Sends the length of the whole answer, then closes after half of it. */
function sendHalf({ normal, request, response }: Exchange): void {
  const bytes = Buffer.from(JSON.stringify(normal.body));
  const headers = { "content-type": "application/json", "content-length": bytes.length };
  response.writeHead(normal.status, headers);
  response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => request.socket.destroy());
}

function retryAfter(random: Random): string {
  return random.chance(0.2) ? new Date(Date.now() + 2000).toUTCString() : random.pick(RETRY_AFTERS);
}
