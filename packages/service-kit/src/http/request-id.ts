import { randomUUID } from "node:crypto";
import { REQUEST_ID_HEADER } from "@adrelay/contract";
import type { Request, RequestHandler, Response } from "express";

const PLAIN_ID = /^[\w.:-]{1,128}$/;

/** Gives each request an id: the caller's if it is a plain one, else a fresh one. Every answer carries it. */
export const assignRequestId: RequestHandler = (request, response, next) => {
  giveRequestId(request, response);
  next();
};

/** As `assignRequestId`; one that it has stays. */
export function giveRequestId(request: Request, response: Response): string {
  const known = requestIdOf(response);
  if (known !== "") {
    return known;
  }
  const given = request.get(REQUEST_ID_HEADER);
  const id = given !== undefined && PLAIN_ID.test(given) ? given : randomUUID();
  response.setHeader(REQUEST_ID_HEADER, id);
  return id;
}

/** The id that was given to the request of this response. */
export function requestIdOf(response: Response): string {
  const id = response.get(REQUEST_ID_HEADER);
  return id ?? "";
}
