/** A test double of the admin API on a real socket, for answers that a real gateway can't be made to give. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import {
  type AcknowledgmentDetail,
  type DiscardView,
  type ErrorCode,
  makeProblem,
  READINESS_PATH,
  type Readiness,
  type ReplayView,
  type Stats,
} from "@adrelay/contract";

export const TOKEN = "token-of-the-double";
/** What the double answers as `until` of a count. */
export const COUNTED_UNTIL = "2026-11-28T09:00:00.001Z";
const AT = "2026-11-28T09:00:00.000Z";

interface SeenCall {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** What the double does instead of answering from its state. */
export type Disturbance = Oddity | { readonly raw: string };
type Oddity =
  | "hang"
  | "cut"
  | "html"
  | "old_form"
  | "unavailable"
  | "busy"
  | "wrong_value"
  | "redirect"
  | "no_admin_api"
  | "not_dead"
  | "unknown_id";

export interface AdminApi {
  readonly url: string;
  readonly calls: SeenCall[];
  readonly letters: Map<string, AcknowledgmentDetail>;
  readonly replays: Map<string, ReplayView>;
  readonly discards: Map<string, DiscardView>;
  stats: Stats;
  readiness: Readiness;
  /** Decides what happens to each call. Undefined means an answer from the state. */
  disturb: (call: SeenCall) => Disturbance | undefined;
  /** By how many dead letters a running replay advances with each call that reads it. */
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
    waits_for: null,
    circuit_reason: null,
    attempts: 2,
    failed_attempts: 2,
    provider_ack_id: null,
    turn: null,
    finding: null,
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
    filter: { publisher: null, reason: "http_400", code: null, unknown: null, since: null, until: null },
    rate_per_second: 100,
    stop_at_share: 0.5,
    stop_after: 20,
    matched: 4,
    replayed: 0,
    outcomes: null,
    created_at: AT,
    created_by: "admin",
    updated_at: AT,
    ended_at: null,
    ...more,
  };
}

function discard(matched: number): DiscardView {
  const { replay_id: discard_id, filter, created_at, created_by, updated_at } = replay();
  const state = "completed";
  const times = { created_at, created_by, updated_at, ended_at: AT };
  return { discard_id, of: "dead", state, filter, matched, discarded: matched, ...times };
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
    open_turns: { acme: 1 },
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
    gone_publishers: [],
    foreign_circuits: [],
    storage: { used_bytes: 47_185_920, limit_bytes: 67_108_864, accepts: "known" },
    quotas: [
      {
        publisher: "acme",
        quota: "unknown_bytes",
        used_bytes: 3_145_728,
        limit_bytes: 3_355_443,
        refused: 88,
      },
      { publisher: "globe", quota: "queued_bytes", used_bytes: 20_480, limit_bytes: 33_554_432, refused: 0 },
      {
        publisher: "acme",
        quota: "requests_per_second",
        used_bytes: null,
        limit_bytes: null,
        refused: 150,
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
        publishers_file: { digest: "0123456789ab", valid: false },
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
    discards: new Map(),
    stats: someStats(),
    readiness: { status: "ready", stopping: false, checks: { redis: "ok" } },
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
  if (request.url === READINESS_PATH) {
    sendJson(response, api.readiness.status === "ready" ? 200 : 503, api.readiness);
    return;
  }
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
  if (typeof disturbance === "object") {
    response.writeHead(200).end(disturbance.raw);
    return;
  }
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
    case "busy":
      response.setHeader("Retry-After", "1");
      sendProblem(response, "queue_unavailable");
      return;
    case "wrong_value":
      sendProblem(response, "validation_failed");
      return;
    case "redirect":
      response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
      return;
    case "no_admin_api":
      sendProblem(response, "not_found");
      return;
    case "not_dead":
      sendProblem(response, "not_dead");
      return;
    case "unknown_id":
      sendProblem(response, "unknown_ad_response");
      return;
    default:
      disturbance satisfies never;
  }
}

function answer(api: AdminApi, { method, path, body }: SeenCall, response: ServerResponse): void {
  const [, area = "", id = ""] = path.split("/");
  const dead = [...api.letters.values()].filter(({ state }) => state === "dead");
  const [found, running] = [api.letters.get(id), api.replays.get(id)];
  if (area === "stats") {
    sendJson(response, 200, api.stats);
  } else if (area === "acknowledgments" && id === "") {
    sendJson(response, 200, { acknowledgments: dead, next_cursor: null });
  } else if (area === "acknowledgments" && found !== undefined) {
    sendJson(response, 200, found);
  } else if (area === "replays" && running !== undefined) {
    sendJson(response, 200, advance(api, running));
  } else if (method === "POST" && Object(body).dry_run === true) {
    sendJson(response, 200, { dry_run: true, matched: dead.length, complete: true, until: COUNTED_UNTIL });
  } else if (area === "replays" && id === "" && method === "GET") {
    sendJson(response, 200, { replays: [...api.replays.values()] });
  } else if (area === "discards" && method === "POST") {
    const started = discard(dead.length);
    api.discards.set(started.discard_id, started);
    sendJson(response, 202, started);
  } else if (area === "discards" && api.discards.has(id)) {
    sendJson(response, 200, api.discards.get(id));
  } else if (area === "replays" && method === "POST") {
    const started = replay({ matched: dead.length });
    api.replays.set(started.replay_id, started);
    sendJson(response, 202, started);
  } else {
    sendProblem(response, "not_found");
  }
}

/** Advances a running replay by one step. */
function advance(api: AdminApi, found: ReplayView): ReplayView {
  if (found.state !== "running") {
    return found;
  }
  const replayed = Math.min(found.replayed + api.replayStep, found.matched);
  const isDone = replayed === found.matched;
  const moved = { ...found, replayed, ...(isDone ? { state: "completed" as const, ended_at: AT } : {}) };
  api.replays.set(found.replay_id, moved);
  return moved;
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function sendProblem(response: ServerResponse, code: ErrorCode): void {
  const problem = makeProblem(code, "r", {});
  response
    .writeHead(problem.status, { "content-type": "application/problem+json" })
    .end(JSON.stringify(problem));
}
