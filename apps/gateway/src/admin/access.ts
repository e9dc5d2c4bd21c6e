/**
 * Who may make a call of the admin API. Each route names the role that it needs, and whether operators of some publishers may
 * make it: its handler then shows and changes only what belongs to these.
 */
import { timingSafeEqual } from "node:crypto";
import type { AdResponseId, PublisherId } from "@adrelay/contract";
import { addressOf, type LoginGuard, logIn, sendProblem } from "@adrelay/service-kit";
import { type Actor, type Store, writeActor } from "@adrelay/store";
import type { Request, RequestHandler, Response } from "express";
import type { Logger } from "pino";
import type { OperatorDirectory } from "./operator-directory.ts";
import type { Operator, Role } from "./operators.ts";

/** What a route asks of an operator. */
export interface RouteAccess {
  readonly role: Role;
  /** own: its handler keeps to the operator's publishers. all: it needs an operator of all publishers. */
  readonly publishers: "own" | "all";
}

export interface AccessDeps {
  /** Read at each call, because operators change while the gateway runs. */
  readonly operators: Pick<OperatorDirectory, "current">;
  readonly guard: LoginGuard;
  readonly log: Logger;
}

interface Session {
  readonly operator: Operator;
  readonly actor: Actor;
}

/** Lets only operators pass. Each token is compared in constant time, and all of them on every request. */
export function requireOperator({ operators, guard }: AccessDeps): RequestHandler {
  const find = (digest: Buffer) =>
    operators.current.filter(({ tokenDigests, expiresAtMs }) => {
      const isKnown = tokenDigests.filter((known) => timingSafeEqual(known, digest)).length > 0;
      return isKnown && (expiresAtMs === undefined || Date.now() < expiresAtMs);
    })[0];
  return (request, response, next) => {
    const operator = logIn({ endpoint: "admin", guard, find }, request, response);
    if (operator !== undefined) {
      const actor = { name: operator.name, address: addressOf(request) };
      response.locals["session"] = { operator, actor } satisfies Session;
      next();
    }
  };
}

/** Lets only operators pass who may use the route. */
export function requireAccess({ role, publishers }: RouteAccess, log: Logger): RequestHandler {
  return (request, response, next) => {
    const { operator } = sessionOf(response);
    const lacks = whatIsLacking(operator, { role, publishers });
    if (lacks === undefined) {
      next();
    } else {
      refuse(response, { log, request }, lacks);
    }
  };
}

function whatIsLacking(operator: Operator, { role, publishers }: RouteAccess): string | undefined {
  if (role === "operate" && operator.role === "view") {
    return "it needs the role operate, and the token's role is view";
  }
  return publishers === "all" && operator.publishers !== undefined
    ? "it concerns all publishers, and the token is limited to some"
    : undefined;
}

function refuse(
  response: Response,
  { log, request }: { readonly log: Logger; readonly request: Request },
  detail: string,
): void {
  const { name: by, address } = sessionOf(response).actor;
  log.warn({ event: "operator_forbidden", by, address, method: request.method });
  sendProblem(response, "forbidden", { detail });
}

/** The name of the operator whom `requireOperator` let pass, for logs. */
export function operatorOf(response: Response): string {
  return sessionOf(response).actor.name;
}

/** The same operator with the address, as the store's scripts write it into the audit. */
export function actorOf(response: Response): string {
  return writeActor(sessionOf(response).actor);
}

/** The publishers to which the operator is limited; undefined for all. */
export function ownPublishers(response: Response): readonly PublisherId[] | undefined {
  return sessionOf(response).operator.publishers;
}

/** Whether the operator may see what belongs to a publisher. What belongs to none is for operators of all publishers. */
export function maySee(response: Response, publisher: string | undefined): boolean {
  const own = ownPublishers(response);
  return own === undefined || own.some((id) => id === publisher);
}

/** The same of an ad response. To an operator of other publishers, its id is unknown. */
export async function maySeeId(
  acknowledgments: Pick<Store["acknowledgments"], "find">,
  id: AdResponseId,
  response: Response,
): Promise<boolean> {
  return (
    ownPublishers(response) === undefined || maySee(response, (await acknowledgments.find(id))?.publisher)
  );
}

function sessionOf(response: Response): Session {
  // Only `requireOperator` writes it, and the router puts that before every route.
  return response.locals["session"] as Session;
}
