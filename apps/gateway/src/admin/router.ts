import { makeReadBody, methodNotAllowed } from "@adrelay/service-kit";
import type { Store } from "@adrelay/store";
import { type RequestHandler, Router } from "express";
import { type AdoptionDeps, makeAdoptHandler } from "./adoptions.ts";
import {
  type BulkReplayDeps,
  makeCancelReplayHandler,
  makeListReplaysHandler,
  makeShowReplayHandler,
  makeStartReplayHandler,
} from "./bulk-replays.ts";
import { type ChangeDeps, makeDiscardHandler, makeReplayHandler } from "./dead-letters.ts";
import type { Doctor } from "./doctor.ts";
import { makeListHandler, makeShowHandler } from "./entries.ts";
import { type Operator, requireOperator } from "./operators.ts";
import { makeAuditHandler, makeStatsHandler, type StatsDeps } from "./stats.ts";

export interface AdminDeps extends ChangeDeps, BulkReplayDeps, StatsDeps, AdoptionDeps {
  readonly acknowledgments: Store["acknowledgments"];
  readonly audit: Store["audit"];
  readonly doctor: Doctor;
}

/** Operators send short texts and filters. */
const BODY_LIMIT_BYTES = 16_384;

/** The admin API, for the ops listener. Every call needs an operator's token. */
export function createAdminRouter(operators: readonly Operator[], deps: AdminDeps): Router {
  const readBody = makeReadBody(BODY_LIMIT_BYTES);
  const reads = {
    "/stats": makeStatsHandler(deps),
    "/acknowledgments": makeListHandler(deps),
    "/acknowledgments/:ad_response_id": makeShowHandler(deps),
    "/replays/:replay_id": makeShowReplayHandler(deps),
    "/audit": makeAuditHandler(deps.audit),
    "/doctor": makeDoctorHandler(deps.doctor),
  };
  const writes = {
    "/acknowledgments/:ad_response_id/replay": makeReplayHandler(deps),
    "/acknowledgments/:ad_response_id/discard": makeDiscardHandler(deps, readBody),
    "/replays/:replay_id/cancel": makeCancelReplayHandler(deps),
    "/publishers/:publisher/adopt": makeAdoptHandler(deps, readBody),
  };
  const router = Router();
  router.use("/admin/v1", requireOperator(operators));
  for (const [path, handler] of Object.entries(reads)) {
    router.route(`/admin/v1${path}`).get(handler).all(methodNotAllowed("GET", "HEAD"));
  }
  for (const [path, handler] of Object.entries(writes)) {
    router.route(`/admin/v1${path}`).post(handler).all(methodNotAllowed("POST"));
  }
  router
    .route("/admin/v1/replays")
    .get(makeListReplaysHandler(deps))
    .post(makeStartReplayHandler(deps, readBody))
    .all(methodNotAllowed("GET", "HEAD", "POST"));
  return router;
}

function makeDoctorHandler(doctor: Doctor): RequestHandler {
  return async (_request, response) => {
    response.json(await doctor());
  };
}
