/**
 * An ad service on a real socket. It keeps its own records, and the checks compare them with the ledger. It counts each
 * acknowledgment once and answers 409 to a repeat. Only the id decides whether it counts, refuses or rejects an
 * acknowledgment. A fault changes what the caller gets, not what the provider decides.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { ACKNOWLEDGE_PATH, IDEMPOTENCY_KEY_HEADER } from "@adrelay/contract";
import type { Random } from "@adrelay/testkit";
import type { Account } from "./fault.ts";
import { type ActiveFault, answerWithFault, FaultOfAccount, type NormalAnswer } from "./provider-faults.ts";
import { type AckPost, hashOf, ProviderRecords, type SoldAd } from "./provider-records.ts";

export interface ProviderModel {
  readonly port: number;
  readonly sold: ReadonlyMap<string, SoldAd>;
  readonly acknowledgments: ReadonlyMap<string, readonly AckPost[]>;
  /** Replaces the fault of an account; undefined ends it. */
  setFault(account: Account, fault: ActiveFault | undefined): void;
  close(): Promise<void>;
}

/** The key of each account. A call must carry the key of the account whose path it uses. */
export type AccountKeys = Readonly<Record<Account, string>>;
export const PROVIDER_KEYS: AccountKeys = { acme: "acme-at-the-provider", globe: "globe-at-the-provider" };

export async function startProviderModel(random: Random): Promise<ProviderModel> {
  const records = new ProviderRecords();
  const faults = new Map<Account, FaultOfAccount>();
  const server = createServer((request, response) => {
    readBody(request).then(
      (body) => answer({ request, response, body, records, faults, random }),
      // The caller left before its request was complete.
      () => response.destroy(),
    );
  });
  // Longer than the relay keeps idle connections (four seconds), so that only a fault closes them from this side.
  server.keepAliveTimeout = 30_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    sold: records.sold,
    acknowledgments: records.acknowledgments,
    setFault: (account, fault) => {
      if (fault === undefined) {
        faults.delete(account);
      } else {
        faults.set(account, new FaultOfAccount(fault));
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
  readonly records: ProviderRecords;
  readonly faults: ReadonlyMap<Account, FaultOfAccount>;
  readonly random: Random;
}

function answer(call: Call): void {
  const { request, response, faults, random } = call;
  const account = accountOf(request);
  if (account === undefined) {
    response.writeHead(401).end();
    return;
  }
  const isAcknowledgment = (request.url ?? "").endsWith(ACKNOWLEDGE_PATH);
  const id = isAcknowledgment ? idOf(call.body) : undefined;
  const fault = faults.get(account)?.hits(id, call.body, random);
  const decide = isAcknowledgment ? receiveAcknowledgment : sellAd;
  const normal = decide(call, account, fault);
  answerWithFault({ fault, normal, request, response, random });
}

/** The account is in the path, and its key must be the right one. */
function accountOf({ url = "", headers }: IncomingMessage): Account | undefined {
  const account = url.startsWith("/acme/") ? "acme" : url.startsWith("/globe/") ? "globe" : undefined;
  return account !== undefined && headers["x-service-api-key"] === PROVIDER_KEYS[account]
    ? account
    : undefined;
}

function idOf(body: Buffer): string {
  const { ad_response_id } = Object(JSON.parse(body.toString("utf8")));
  return String(ad_response_id).toLowerCase();
}

/** Faults that come before the provider has read the request. */
const NEVER_READ = new Set([
  "http_500",
  "http_503",
  "http_429",
  "http_401",
  "recoverable",
  "edge_404",
  "edge_login",
  "one_429",
  "many_403",
  "waf_403",
]);
/** Faults that come after the provider has decided. */
const ALWAYS_READ = new Set([
  "lost_answer",
  "half_body",
  "slow_headers",
  "keep_alive_reset",
  "gzip",
  "continue",
]);

/** Whether the provider reads the request. With any other fault, such as a hang, it reads half of them. */
function isRead(fault: string | undefined, random: Random): boolean {
  return fault === undefined || ALWAYS_READ.has(fault) || (!NEVER_READ.has(fault) && random.chance(0.5));
}

function receiveAcknowledgment(
  { request, body, records, random }: Call,
  account: Account,
  fault: string | undefined,
): NormalAnswer {
  const id = idOf(body);
  const { decision, answer: normal } = isRead(fault, random)
    ? records.decide(id)
    : { decision: "not_read" as const, answer: { status: 200, body: {} } };
  records.record(id, {
    atMs: Date.now(),
    account,
    idempotencyKey: String(request.headers[IDEMPOTENCY_KEY_HEADER.toLowerCase()]),
    bodyHash: hashOf(body),
    decision,
    fault,
  });
  return normal;
}

/** 84 % filled, 8 % rejected, 6 % without an ad, 2 % the caller's fault. */
function sellAd({ records, random }: Call, account: Account): NormalAnswer {
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
  records.sold.set(ids.ad_response_id, { account, atMs: Date.now() });
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
