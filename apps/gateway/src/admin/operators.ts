/** The users of the admin API, by their tokens. */
import { timingSafeEqual } from "node:crypto";
import { type FieldFault, headerKeySchema } from "@adrelay/contract";
import { digestKey } from "@adrelay/provider";
import { sendProblem } from "@adrelay/service-kit";
import type { RequestHandler, Response } from "express";
import { z } from "zod";

/** A user of the admin API, by the name that the audit shows. */
export interface Operator {
  readonly name: string;
  readonly token: string;
}

/** The name of the operator who has ADMIN_TOKEN. */
const SINGLE_OPERATOR = "admin";

/** `name:token`, as it is written in a setting. */
export const operatorSchema = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,32}:\S+$/, "must be name:token, the name of 1 to 32 letters, digits, _ or -")
  .transform((text): Operator => {
    const at = text.indexOf(":");
    return { name: text.slice(0, at), token: text.slice(at + 1) };
  })
  .refine(({ token }) => headerKeySchema.safeParse(token).success, {
    error: "must have tokens of printable ASCII, without quotes around them",
  });

/** All operators that the settings name. */
export function operatorsOf(single: string | undefined, named: readonly Operator[]): Operator[] {
  return single === undefined ? [...named] : [{ name: SINGLE_OPERATOR, token: single }, ...named];
}

/** Names and tokens must be distinct, so that a token identifies an operator. */
export function operatorFaults(operators: readonly Operator[]): FieldFault[] {
  const isDistinct = (values: readonly string[]) => new Set(values).size === values.length;
  const faults: FieldFault[] = [];
  if (!isDistinct(operators.map(({ name }) => name))) {
    const message = `names must be distinct; ${SINGLE_OPERATOR} is the name of ADMIN_TOKEN`;
    faults.push({ path: "ADMIN_TOKENS", message });
  }
  if (!isDistinct(operators.map(({ token }) => token))) {
    faults.push({ path: "ADMIN_TOKENS", message: "tokens must be distinct, and other than ADMIN_TOKEN" });
  }
  return faults;
}

/** Lets only operators pass. Each token is compared in constant time, and all of them on every request. */
export function requireOperator(operators: readonly Operator[]): RequestHandler {
  const known = operators.map(({ name, token }) => ({ name, digest: Buffer.from(digestKey(token)) }));
  return (request, response, next) => {
    const token = /^Bearer (.+)$/i.exec(request.get("Authorization") ?? "")?.[1] ?? "";
    const given = Buffer.from(digestKey(token));
    const operator = known.filter(({ digest }) => timingSafeEqual(digest, given))[0];
    if (operator === undefined) {
      response.set("WWW-Authenticate", "Bearer");
      sendProblem(response, "unauthenticated", { detail: "send Authorization: Bearer with an admin token" });
      return;
    }
    response.locals["operator"] = operator.name;
    next();
  };
}

/** The name of the operator whom `requireOperator` let pass. */
export function operatorOf(response: Response): string {
  return String(response.locals["operator"]);
}
