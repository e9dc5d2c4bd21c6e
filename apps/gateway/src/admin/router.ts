import { ADMIN_PATH } from "@adrelay/contract";
import { makeReadBody, methodNotAllowed } from "@adrelay/service-kit";
import type { Store } from "@adrelay/store";
import { type RequestHandler, Router } from "express";
import { type AccessDeps, type RouteAccess, requireAccess, requireOperator } from "./access.ts";
import { type AdoptionDeps, makeAdoptHandler } from "./adoptions.ts";
import { makeCancelBulkHandler, makeListBulkHandler, makeShowBulkHandler } from "./bulk-changes.ts";
import { type BulkDiscardDeps, describeDiscards, makeStartDiscardHandler } from "./bulk-discards.ts";
import { type BulkReplayDeps, describeReplays, makeStartReplayHandler } from "./bulk-replays.ts";
import { type ChangeDeps, makeDiscardHandler, makeReplayHandler } from "./dead-letters.ts";
import type { Doctor } from "./doctor.ts";
import { makeListHandler, makeShowHandler } from "./entries.ts";
import { type ErasureDeps, makeEraseHandler } from "./erasures.ts";
import { makeChoosePublisher } from "./known-publishers.ts";
import { makePublishersHandler, type PublishersDeps } from "./publishers.ts";
import { makeAuditHandler, makeStatsHandler, type StatsDeps } from "./stats.ts";

export interface AdminDeps
  extends ChangeDeps,
    BulkReplayDeps,
    BulkDiscardDeps,
    StatsDeps,
    ErasureDeps,
    PublishersDeps,
    Omit<AdoptionDeps, "snapshot"> {
  readonly acknowledgments: Store["acknowledgments"];
  readonly audit: Store["audit"];
  readonly doctor: Doctor;
}

/** Operators send short texts and filters. */
const BODY_LIMIT_BYTES = 16_384;

const VIEW = { role: "view", publishers: "own" } as const satisfies RouteAccess;
const OPERATE = { role: "operate", publishers: "own" } as const satisfies RouteAccess;

/** All calls of the admin API, below `ADMIN_PATH`, and who may make each. */
export const ADMIN_ACCESS = {
  "GET /stats": VIEW,
  "GET /acknowledgments": VIEW,
  "GET /acknowledgments/:ad_response_id": VIEW,
  "POST /acknowledgments/:ad_response_id/replay": OPERATE,
  "POST /acknowledgments/:ad_response_id/discard": OPERATE,
  "GET /replays": VIEW,
  "POST /replays": OPERATE,
  "GET /replays/:replay_id": VIEW,
  "POST /replays/:replay_id/cancel": OPERATE,
  "GET /discards": VIEW,
  "POST /discards": OPERATE,
  "GET /discards/:discard_id": VIEW,
  "POST /discards/:discard_id/cancel": OPERATE,
  "POST /erasures": OPERATE,
  "POST /publishers/:publisher/adopt": { role: "operate", publishers: "all" },
  "GET /publishers": VIEW,
  "GET /audit": VIEW,
  // It calls every provider, and shows their addresses.
  "GET /doctor": { role: "view", publishers: "all" },
} as const satisfies Readonly<Record<`${Method} /${string}`, RouteAccess>>;

type Method = "GET" | "POST";
type AdminCall = keyof typeof ADMIN_ACCESS;

/** The answer to each call. */
function handlersOf(deps: AdminDeps): Readonly<Record<AdminCall, RequestHandler>> {
  const readBody = makeReadBody(BODY_LIMIT_BYTES);
  const choosePublisher = makeChoosePublisher(deps);
  const [replays, discards] = [describeReplays(deps), describeDiscards(deps)];
  return {
    "GET /stats": makeStatsHandler(deps),
    "GET /acknowledgments": makeListHandler(deps, choosePublisher),
    "GET /acknowledgments/:ad_response_id": makeShowHandler(deps),
    "POST /acknowledgments/:ad_response_id/replay": makeReplayHandler(deps),
    "POST /acknowledgments/:ad_response_id/discard": makeDiscardHandler(deps, readBody),
    "GET /replays": makeListBulkHandler(replays),
    "POST /replays": makeStartReplayHandler(deps, { choosePublisher, readBody }),
    "GET /replays/:replay_id": makeShowBulkHandler(replays),
    "POST /replays/:replay_id/cancel": makeCancelBulkHandler(replays),
    "GET /discards": makeListBulkHandler(discards),
    "POST /discards": makeStartDiscardHandler(deps, { choosePublisher, readBody }),
    "GET /discards/:discard_id": makeShowBulkHandler(discards),
    "POST /discards/:discard_id/cancel": makeCancelBulkHandler(discards),
    "POST /erasures": makeEraseHandler(deps, { choosePublisher, readBody }),
    "POST /publishers/:publisher/adopt": makeAdoptHandler(
      { ...deps, snapshot: () => deps.store.snapshot() },
      readBody,
    ),
    "GET /publishers": makePublishersHandler(deps),
    "GET /audit": makeAuditHandler(deps.audit),
    "GET /doctor": makeDoctorHandler(deps.doctor),
  };
}

/** The admin API, for the ops listener. Every call needs an operator's token, and what `ADMIN_ACCESS` says. */
export function createAdminRouter(access: AccessDeps, deps: AdminDeps): Router {
  const router = Router();
  router.use(ADMIN_PATH, requireOperator(access));
  const handlers = handlersOf(deps);
  const calls = Object.entries(ADMIN_ACCESS).map(([call, needs]) => {
    const [method = "", path = ""] = call.split(" ");
    // The type of Object.entries doesn't say that these are the table's own keys.
    return { method, path, needs, handler: handlers[call as AdminCall] };
  });
  for (const [path, ofPath] of Map.groupBy(calls, (call) => call.path)) {
    const route = router.route(ADMIN_PATH + path);
    for (const { method, needs, handler } of ofPath) {
      route[method === "GET" ? "get" : "post"](requireAccess(needs, access.log), handler);
    }
    route.all(
      methodNotAllowed(...ofPath.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : method))),
    );
  }
  return router;
}

function makeDoctorHandler(doctor: Doctor): RequestHandler {
  return async (_request, response) => {
    response.json(await doctor());
  };
}
