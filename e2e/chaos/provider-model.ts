/**
 * An ad service on a real socket with books of its own, which the relay's are held against. It takes each
 * acknowledgment once and answers 409 to a repeat. What it thinks of an ad response follows from the id
 * alone; faults come on top and decide what reaches the caller, not what it thinks.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { ACKNOWLEDGE_PATH, IDEMPOTENCY_KEY_HEADER } from "@adrelay/contract";
import type { Random } from "@adrelay/testkit";
import type { Account } from "./fault.ts";
import { type AckPost, hashOf, ProviderBooks, type SoldAd } from "./provider-books.ts";
import { type ActiveFault, answerWithFault, type HonestAnswer } from "./provider-faults.ts";

export interface ProviderModel {
  readonly port: number;
  readonly sold: ReadonlyMap<string, SoldAd>;
  readonly acknowledgments: ReadonlyMap<string, readonly AckPost[]>;
  /** Replaces the fault of an account; undefined ends it. */
  setFault(account: Account, fault: ActiveFault | undefined): void;
  close(): Promise<void>;
}

/** The accounts' keys: each call must carry that of the account whose path it uses. */
export type AccountKeys = Readonly<Record<Account, string>>;
export const PROVIDER_KEYS: AccountKeys = { acme: "acme-at-the-provider", globe: "globe-at-the-provider" };

export async function startProviderModel(random: Random): Promise<ProviderModel> {
  const books = new ProviderBooks();
  const faults = new Map<Account, ActiveFault>();
  const server = createServer((request, response) => {
    readBody(request).then(
      (body) => answer({ request, response, body, books, faults, random }),
      // The caller is gone before its request was whole: there is nobody to answer.
      () => response.destroy(),
    );
  });
  // The relay closes idle connections itself, after four seconds; the fault closes them at random.
  server.keepAliveTimeout = 30_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    sold: books.sold,
    acknowledgments: books.acknowledgments,
    setFault: (account, fault) => {
      if (fault === undefined) {
        faults.delete(account);
      } else {
        faults.set(account, fault);
      }
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
  readonly books: ProviderBooks;
  readonly faults: ReadonlyMap<Account, ActiveFault>;
  readonly random: Random;
}

function answer(call: Call): void {
  const { request, response, faults, random } = call;
  const account = accountOf(request);
  if (account === undefined) {
    response.writeHead(401).end();
    return;
  }
  const active = faults.get(account);
  const fault = active !== undefined && random.chance(active.share) ? active.how : undefined;
  const isAcknowledgment = (request.url ?? "").endsWith(ACKNOWLEDGE_PATH);
  const decide = isAcknowledgment ? judgeAcknowledgment : sellAd;
  const honest = decide(call, account, fault);
  answerWithFault({ fault, honest, request, response, random });
}

/** The account is in the path, and its key must be the right one. */
function accountOf({ url = "", headers }: IncomingMessage): Account | undefined {
  const account = url.startsWith("/acme/") ? "acme" : url.startsWith("/globe/") ? "globe" : undefined;
  return account !== undefined && headers["x-service-api-key"] === PROVIDER_KEYS[account]
    ? account
    : undefined;
}

/** Faults in which the provider never gets to look at what was sent. */
const TURNED_AWAY = new Set(["http_500", "http_503", "http_429", "http_401", "recoverable"]);
/** Faults in which it has always done its part before. */
const DONE_BEFORE = new Set(["lost_answer", "half_body", "slow_headers", "keep_alive_reset"]);

/** Of the rest, such as a hang, half come before the provider has done its part and half after. */
function looksAt(fault: string | undefined, random: Random): boolean {
  return fault === undefined || DONE_BEFORE.has(fault) || (!TURNED_AWAY.has(fault) && random.chance(0.5));
}

function judgeAcknowledgment(
  { request, body, books, random }: Call,
  account: Account,
  fault: string | undefined,
): HonestAnswer {
  const { ad_response_id } = Object(JSON.parse(body.toString("utf8")));
  const id = String(ad_response_id).toLowerCase();
  const judged = looksAt(fault, random)
    ? books.judge(id)
    : { verdict: "not_looked_at" as const, answer: { status: 200, body: {} } };
  books.record(id, {
    atMs: Date.now(),
    account,
    idempotencyKey: String(request.headers[IDEMPOTENCY_KEY_HEADER.toLowerCase()]),
    bodyHash: hashOf(body),
    verdict: judged.verdict,
    fault,
  });
  return judged.answer;
}

/** 84 % filled, 8 % rejected, 6 % without an ad, 2 % the caller's fault. */
function sellAd({ books, random }: Call, account: Account): HonestAnswer {
  const roll = random.next();
  const ids = { ad_request_id: randomUUID(), ad_response_id: randomUUID() };
  const rest = { execution_time_ms: 1.5 };
  if (roll < 0.02) {
    return { status: 422, body: { code: "validation_failed" } };
  }
  if (roll < 0.16) {
    const status = roll < 0.08 ? "no_fill" : "rejected";
    const none = { enhanced_prompt: null, product_name: null, success: false };
    return { status: status === "rejected" ? 201 : 202, body: { ...ids, ...rest, ...none, status } };
  }
  books.sold.set(ids.ad_response_id, { account, atMs: Date.now() });
  const ad = { enhanced_prompt: "a prompt with an ad", product_name: "Velmora Drift", success: true };
  return { status: 200, body: { ...ids, ...rest, ...ad, status: "ok" } };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(Buffer.from(chunk));
  }
  return Buffer.concat(chunks);
}
