import { ADMIN_PATH } from "@adrelay/contract";
import { makeReadBody, methodNotAllowed } from "@adrelay/service-kit";
import type { Store } from "@adrelay/store";
import { type RequestHandler, Router } from "express";
import { type DoorDeps, type RouteAccess, requireAccess, requireOperator } from "./access.ts";
import { type AdoptionDeps, makeAdoptHandler } from "./adoptions.ts";
import { makeCancelBulkHandler, makeListBulkHandler, makeShowBulkHandler } from "./bulk-changes.ts";
import { type BulkDiscardDeps, describeDiscards, makeStartDiscardHandler } from "./bulk-discards.ts";
import { type BulkReplayDeps, describeReplays, makeStartReplayHandler } from "./bulk-replays.ts";
import { type ChangeDeps, makeDiscardHandler, makeReplayHandler } from "./dead-letters.ts";
import type { Doctor } from "./doctor.ts";
import { makeListHandler, makeShowHandler } from "./entries.ts";
import { makeChoosePublisher } from "./known-publishers.ts";
import { makeAuditHandler, makeStatsHandler, type StatsDeps } from "./stats.ts";

export interface AdminDeps
  extends ChangeDeps,
    BulkReplayDeps,
    BulkDiscardDeps,
    StatsDeps,
    Omit<AdoptionDeps, "snapshot"> {
  readonly acknowledgments: Store["acknowledgments"];
  readonly audit: Store["audit"];
  readonly doctor: Doctor;
}

/** Operators send short texts and filters. */
const BODY_LIMIT_BYTES = 16_384;

/** A call of the admin API: who may make it, and who answers it. */
export interface AdminRoute extends RouteAccess {
  readonly method: "get" | "post";
  /** Below `ADMIN_PATH`. */
  readonly path: string;
  readonly handler: RequestHandler;
}

/** All calls of the admin API. */
export function adminRoutes(deps: AdminDeps): readonly AdminRoute[] {
  const readBody = makeReadBody(BODY_LIMIT_BYTES);
  const choosePublisher = makeChoosePublisher(deps);
  const start = { choosePublisher, readBody };
  const [replays, discards] = [describeReplays(deps), describeDiscards(deps)];
  const adopt = makeAdoptHandler({ ...deps, snapshot: () => deps.store.snapshot() }, readBody);
  const read = (path: string, handler: RequestHandler) =>
    ({ method: "get", path, role: "view", publishers: "own", handler }) as const;
  const change = (path: string, handler: RequestHandler) =>
    ({ method: "post", path, role: "operate", publishers: "own", handler }) as const;
  return [
    read("/stats", makeStatsHandler(deps)),
    read("/acknowledgments", makeListHandler(deps, choosePublisher)),
    read("/acknowledgments/:ad_response_id", makeShowHandler(deps)),
    change("/acknowledgments/:ad_response_id/replay", makeReplayHandler(deps)),
    change("/acknowledgments/:ad_response_id/discard", makeDiscardHandler(deps, readBody)),
    read("/replays", makeListBulkHandler(replays)),
    change("/replays", makeStartReplayHandler(deps, start)),
    read("/replays/:replay_id", makeShowBulkHandler(replays)),
    change("/replays/:replay_id/cancel", makeCancelBulkHandler(replays)),
    read("/discards", makeListBulkHandler(discards)),
    change("/discards", makeStartDiscardHandler(deps, start)),
    read("/discards/:discard_id", makeShowBulkHandler(discards)),
    change("/discards/:discard_id/cancel", makeCancelBulkHandler(discards)),
    { ...change("/publishers/:publisher/adopt", adopt), publishers: "all" },
    read("/audit", makeAuditHandler(deps.audit)),
    // It calls every provider, and shows their addresses.
    { ...read("/doctor", makeDoctorHandler(deps.doctor)), publishers: "all" },
  ];
}

/** The admin API, for the ops listener. Every call needs an operator's token, and the role of its route. */
export function createAdminRouter(door: DoorDeps, routes: readonly AdminRoute[]): Router {
  const router = Router();
  router.use(ADMIN_PATH, requireOperator(door));
  for (const [path, ofPath] of Map.groupBy(routes, (route) => route.path)) {
    const route = router.route(ADMIN_PATH + path);
    for (const { method, handler, ...access } of ofPath) {
      route[method](requireAccess(access, door.log), handler);
    }
    route.all(methodNotAllowed(...ofPath.flatMap(({ method }) => ALLOWED[method])));
  }
  return router;
}

const ALLOWED = { get: ["GET", "HEAD"], post: ["POST"] } as const;

function makeDoctorHandler(doctor: Doctor): RequestHandler {
  return async (_request, response) => {
    response.json(await doctor());
  };
}
