import { randomUUID } from "node:crypto";
import { REQUEST_ID_HEADER } from "@adrelay/contract";
import type { Request, RequestHandler, Response } from "express";
import { headerOf } from "./header-of.ts";
import { recordOf } from "./request-record.ts";

const HEADER = REQUEST_ID_HEADER.toLowerCase();
const PLAIN_ID = /^[\w.:-]{1,128}$/;

/** Gives each request an id: the caller's if it is a plain one, else a fresh one. Every answer carries it. */
export const assignRequestId: RequestHandler = (request, response, next) => {
  giveRequestId(request, response);
  next();
};

/** As `assignRequestId`; one that it has stays. */
export function giveRequestId(request: Request, response: Response): string {
  const record = recordOf(response);
  if (record.requestId === "") {
    const given = headerOf(request, HEADER);
    record.requestId = given !== undefined && PLAIN_ID.test(given) ? given : randomUUID();
    response.setHeader(REQUEST_ID_HEADER, record.requestId);
  }
  return record.requestId;
}

/** The id that was given to the request of this response; empty if none was. */
export function requestIdOf(response: Response): string {
  return recordOf(response).requestId;
}
