import { randomUUID } from "node:crypto";
import { REQUEST_ID_HEADER } from "@adrelay/contract";
import type { RequestHandler, Response } from "express";

const PLAIN_ID = /^[\w.:-]{1,128}$/;

/** Gives each request an id: the caller's if it is a plain one, else a fresh one. Every answer carries it. */
export const assignRequestId: RequestHandler = (request, response, next) => {
  if (requestIdOf(response) !== "") {
    next();
    return;
  }
  const given = request.get(REQUEST_ID_HEADER);
  response.set(REQUEST_ID_HEADER, given !== undefined && PLAIN_ID.test(given) ? given : randomUUID());
  next();
};

/** The id that `assignRequestId` gave to the request of this response. */
export function requestIdOf(response: Response): string {
  const id = response.get(REQUEST_ID_HEADER);
  return id ?? "";
}
