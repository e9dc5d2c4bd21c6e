import { timingSafeEqual } from "node:crypto";
import { digestKey } from "@adrelay/provider";
import { methodNotAllowed, sendProblem } from "@adrelay/service-kit";
import { type RequestHandler, Router } from "express";
import type { Doctor } from "./doctor/doctor.ts";
import { makeReplayHandler, type ReplayDeps } from "./replay/handler.ts";

/** The admin API, for the ops listener. Every call needs the token. */
export function createAdminRouter(token: string, deps: ReplayDeps & { readonly doctor: Doctor }): Router {
  const router = Router();
  router.use("/admin/v1", requireToken(token));
  router
    .route("/admin/v1/acknowledgments/:ad_response_id/replay")
    .post(makeReplayHandler(deps))
    .all(methodNotAllowed("POST"));
  router
    .route("/admin/v1/doctor")
    .get(async (_request, response) => {
      response.json(await deps.doctor());
    })
    .all(methodNotAllowed("GET", "HEAD"));
  return router;
}

function requireToken(token: string): RequestHandler {
  const expected = digestKey(token);
  return (request, response, next) => {
    const given = /^Bearer (.+)$/i.exec(request.get("Authorization") ?? "")?.[1];
    if (given === undefined || !timingSafeEqual(digestKey(given), expected)) {
      response.set("WWW-Authenticate", "Bearer");
      sendProblem(response, "unauthenticated");
      return;
    }
    next();
  };
}
