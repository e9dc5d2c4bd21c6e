/** A test double of the admin API on a real socket: it answers in the contract's shapes, from a small state. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import {
  type AcknowledgmentDetail,
  type DoctorReport,
  type ErrorCode,
  makeProblem,
  type ReplayView,
  type Stats,
} from "@adrelay/contract";

export const TOKEN = "token-of-the-double";
const AT = "2026-11-28T09:00:00.000Z";

export interface SeenCall {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** What the double does in place of answering by its state. */
export type Disturbance =
  | "hang"
  | "cut"
  | "html"
  | "old_form"
  | "unavailable"
  | "redirect"
  | "no_admin_api"
  | "empty_page";

export interface AdminApi {
  readonly url: string;
  readonly calls: SeenCall[];
  readonly letters: Map<string, AcknowledgmentDetail>;
  readonly replays: Map<string, ReplayView>;
  stats: Stats;
  doctor: DoctorReport;
  /** Decides about the call to come; undefined answers by the state. */
  disturb: (call: SeenCall) => Disturbance | undefined;
  /** How many letters each look at a running replay moves on. */
  replayStep: number;
  close(): Promise<void>;
}

export function letter(more: Partial<AcknowledgmentDetail> = {}): AcknowledgmentDetail {
  return {
    ad_response_id: randomUUID(),
    ad_ack_id: randomUUID(),
    publisher: "acme",
    state: "dead",
    status: null,
    reason: "http_400",
    reason_text: "The provider answered 400",
    last_code: "http_400",
    provider_error: "no such campaign",
    size_bytes: 120,
    recorded_at: AT,
    deadline_at: AT,
    accepted_at: AT,
    queued_at: AT,
    next_attempt_at: null,
    ended_at: AT,
    late: false,
    attempts: 2,
    failed_attempts: 2,
    provider_ack_id: null,
    attempt_log: [
      { at: AT, outcome: "retry", code: "http_500", duration_ms: 12 },
      { at: AT, outcome: "die", code: "http_400", duration_ms: 7 },
    ],
    ...more,
  };
}

export function replay(more: Partial<ReplayView> = {}): ReplayView {
  return {
    replay_id: randomUUID(),
    state: "running",
    filter: { publisher: null, reason: "http_400", since: null, until: null },
    rate_per_second: 100,
    matched: 4,
    replayed: 0,
    created_at: AT,
    created_by: "admin",
    updated_at: AT,
    ended_at: null,
    ...more,
  };
}

const NO_STATES = {
  awaiting: 0,
  queued: 0,
  delivered: 0,
  refused: 0,
  dead: 0,
  missed: 0,
  discarded: 0,
  expired: 0,
};

function someStats(): Stats {
  const acme = { ...NO_STATES, delivered: 41, dead: 3 };
  return {
    at: AT,
    version: "0.1.0",
    states: { ...acme, queued: 5 },
    publishers: { acme, globe: { ...NO_STATES, queued: 5 } },
    overdue: 0,
    oldest_queued_age_seconds: 12.4,
    oldest_dead_letter_age_seconds: 86_400,
    queue: { waiting: 1, active: 2, delayed: 2, failed: 3 },
    dead_letters: [{ publisher: "acme", reason: "http_400", count: 3 }],
    providers: [
      {
        provider: "https://ads.example",
        publishers: ["acme", "globe"],
        circuit: "open",
        reason: "outage",
        since: AT,
        next_probe_at: AT,
        parked: 5,
      },
    ],
    processes: [
      {
        role: "worker",
        host: "box",
        pid: 7,
        version: "0.1.0",
        started_at: AT,
        seen_at: AT,
        clock_skew_ms: 3,
      },
    ],
    data_loss: null,
  };
}

export async function startAdminApi(): Promise<AdminApi> {
  const server = createServer((request, response) => {
    void serve(api, request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const api: AdminApi = {
    url: `http://127.0.0.1:${port}`,
    calls: [],
    letters: new Map(),
    replays: new Map(),
    stats: someStats(),
    doctor: { at: AT, checks: [{ name: "redis", status: "ok", detail: "answers in 1 ms" }] },
    disturb: () => undefined,
    replayStep: 2,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return api;
}

async function serve(api: AdminApi, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const call = await readCall(request);
  api.calls.push(call);
  const disturbance = api.disturb(call);
  if (disturbance !== undefined) {
    carryOut(disturbance, request, response);
  } else if (request.headers.authorization !== `Bearer ${TOKEN}`) {
    sendProblem(response, "unauthenticated");
  } else {
    answer(api, call, response);
  }
}

async function readCall(request: IncomingMessage): Promise<SeenCall> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(Buffer.from(chunk));
  }
  const text = Buffer.concat(chunks).toString("utf8");
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://double");
  return {
    method: request.method ?? "",
    path: pathname.replace(/^\/admin\/v1/, ""),
    query: Object.fromEntries(searchParams),
    body: text === "" ? undefined : JSON.parse(text),
  };
}

function carryOut(disturbance: Disturbance, request: IncomingMessage, response: ServerResponse): void {
  switch (disturbance) {
    case "hang":
      return;
    case "cut":
      request.socket.destroy();
      return;
    case "html":
      response.writeHead(200, { "content-type": "text/html" }).end("<html>welcome</html>");
      return;
    case "old_form":
      sendJson(response, 200, { states: "many" });
      return;
    case "unavailable":
      sendProblem(response, "queue_unavailable");
      return;
    case "redirect":
      response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
      return;
    case "no_admin_api":
      sendProblem(response, "not_found");
      return;
    case "empty_page":
      sendJson(response, 200, { acknowledgments: [], next_cursor: "next" });
      return;
    default:
      disturbance satisfies never;
  }
}

function answer(api: AdminApi, call: SeenCall, response: ServerResponse): void {
  const [, area = "", id = "", action = ""] = call.path.split("/");
  switch (area) {
    case "stats":
      sendJson(response, 200, api.stats);
      return;
    case "doctor":
      sendJson(response, 200, api.doctor);
      return;
    case "audit": {
      const entry = { at: AT, by: "alice", ad_response_id: null, replay_id: "r-1", details: { matched: 4 } };
      sendJson(response, 200, { entries: [{ ...entry, action: "replays_start" }], next_cursor: null });
      return;
    }
    case "acknowledgments":
      answerLetters(api, { ...call, id, action }, response);
      return;
    case "replays":
      answerReplays(api, { ...call, id, action }, response);
      return;
    default:
      sendProblem(response, "not_found");
  }
}

interface RoutedCall extends SeenCall {
  readonly id: string;
  readonly action: string;
}

function answerLetters(api: AdminApi, { id, action, query }: RoutedCall, response: ServerResponse): void {
  if (id === "") {
    const all = [...api.letters.values()];
    const from = Number(query["cursor"] ?? 0);
    const to = from + Number(query["limit"]);
    const page = { acknowledgments: all.slice(from, to), next_cursor: to < all.length ? String(to) : null };
    sendJson(response, 200, page);
    return;
  }
  const found = api.letters.get(id);
  if (found === undefined) {
    sendProblem(response, "unknown_ad_response");
  } else if (action === "") {
    sendJson(response, 200, found);
  } else if (found.state !== "dead") {
    sendProblem(response, "not_dead", `This acknowledgment is ${found.state}.`);
  } else {
    const state = action === "replay" ? "queued" : "discarded";
    api.letters.set(id, { ...found, state });
    sendJson(response, 200, { ad_response_id: id, state });
  }
}

function answerReplays(
  api: AdminApi,
  { method, id, action, body }: RoutedCall,
  response: ServerResponse,
): void {
  const matched = [...api.letters.values()].filter(({ state }) => state === "dead").length;
  if (id === "" && method === "GET") {
    sendJson(response, 200, { replays: [...api.replays.values()] });
  } else if (id === "" && Object(body).dry_run === true) {
    sendJson(response, 200, { dry_run: true, matched });
  } else if (id === "") {
    const started = replay({ matched });
    api.replays.set(started.replay_id, started);
    sendJson(response, 202, started);
  } else {
    answerReplay(api, { id, action }, response);
  }
}

function answerReplay(
  api: AdminApi,
  { id, action }: Pick<RoutedCall, "id" | "action">,
  response: ServerResponse,
): void {
  const found = api.replays.get(id);
  if (found === undefined) {
    sendProblem(response, "unknown_ad_response");
    return;
  }
  const isRunning = found.state === "running";
  const replayed = Math.min(found.replayed + (isRunning ? api.replayStep : 0), found.matched);
  const next = action === "cancel" ? "cancelled" : replayed === found.matched ? "completed" : "running";
  const state = isRunning ? next : found.state;
  const moved = { ...found, replayed, state, ended_at: state === "running" ? null : AT };
  api.replays.set(id, moved);
  sendJson(response, 200, moved);
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function sendProblem(response: ServerResponse, code: ErrorCode, detail?: string): void {
  const problem = makeProblem(code, "r", detail === undefined ? {} : { detail });
  response
    .writeHead(problem.status, { "content-type": "application/problem+json" })
    .end(JSON.stringify(problem));
}
