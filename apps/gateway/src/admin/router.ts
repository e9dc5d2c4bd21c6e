import { makeReadBody, methodNotAllowed } from "@adrelay/service-kit";
import type { Store } from "@adrelay/store";
import { type RequestHandler, Router } from "express";
import { type AdoptionDeps, makeAdoptHandler } from "./adoptions.ts";
import { makeCancelBulkHandler, makeListBulkHandler, makeShowBulkHandler } from "./bulk-changes.ts";
import { type BulkDiscardDeps, describeDiscards, makeStartDiscardHandler } from "./bulk-discards.ts";
import { type BulkReplayDeps, describeReplays, makeStartReplayHandler } from "./bulk-replays.ts";
import { type ChangeDeps, makeDiscardHandler, makeReplayHandler } from "./dead-letters.ts";
import type { Doctor } from "./doctor.ts";
import { makeListHandler, makeShowHandler } from "./entries.ts";
import { type ErasureDeps, makeEraseHandler } from "./erasures.ts";
import { makeCheckPublisher } from "./known-publishers.ts";
import { type Operator, requireOperator } from "./operators.ts";
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

/** The admin API, for the ops listener. Every call needs an operator's token. */
export function createAdminRouter(operators: readonly Operator[], deps: AdminDeps): Router {
  const readBody = makeReadBody(BODY_LIMIT_BYTES);
  const checkPublisher = makeCheckPublisher(deps);
  const [replays, discards] = [describeReplays(deps), describeDiscards(deps)];
  const reads = {
    "/stats": makeStatsHandler(deps),
    "/acknowledgments": makeListHandler(deps, checkPublisher),
    "/acknowledgments/:ad_response_id": makeShowHandler(deps),
    "/replays/:replay_id": makeShowBulkHandler(replays),
    "/discards/:discard_id": makeShowBulkHandler(discards),
    "/publishers": makePublishersHandler(deps),
    "/audit": makeAuditHandler(deps.audit),
    "/doctor": makeDoctorHandler(deps.doctor),
  };
  const writes = {
    "/acknowledgments/:ad_response_id/replay": makeReplayHandler(deps),
    "/acknowledgments/:ad_response_id/discard": makeDiscardHandler(deps, readBody),
    "/replays/:replay_id/cancel": makeCancelBulkHandler(replays),
    "/discards/:discard_id/cancel": makeCancelBulkHandler(discards),
    "/erasures": makeEraseHandler(deps, { checkPublisher, readBody }),
    "/publishers/:publisher/adopt": makeAdoptHandler(
      { ...deps, snapshot: () => deps.store.snapshot() },
      readBody,
    ),
  };
  const bulk = {
    "/replays": {
      list: makeListBulkHandler(replays),
      start: makeStartReplayHandler(deps, { checkPublisher, readBody }),
    },
    "/discards": {
      list: makeListBulkHandler(discards),
      start: makeStartDiscardHandler(deps, { checkPublisher, readBody }),
    },
  };
  const router = Router();
  router.use("/admin/v1", requireOperator(operators));
  for (const [path, handler] of Object.entries(reads)) {
    router.route(`/admin/v1${path}`).get(handler).all(methodNotAllowed("GET", "HEAD"));
  }
  for (const [path, handler] of Object.entries(writes)) {
    router.route(`/admin/v1${path}`).post(handler).all(methodNotAllowed("POST"));
  }
  for (const [path, { list, start }] of Object.entries(bulk)) {
    router
      .route(`/admin/v1${path}`)
      .get(list)
      .post(start)
      .all(methodNotAllowed("GET", "HEAD", "POST"));
  }
  return router;
}

function makeDoctorHandler(doctor: Doctor): RequestHandler {
  return async (_request, response) => {
    response.json(await doctor());
  };
}
