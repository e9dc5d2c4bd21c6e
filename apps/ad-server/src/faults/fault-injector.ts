import { randomUUID } from "node:crypto";
import { PROBLEM_CONTENT_TYPE } from "@adrelay/contract";
import { requestIdOf } from "@adrelay/service-kit";
import type { Response } from "express";
import type { FaultPlan } from "./fault-plan.ts";
import type { Fault, FaultOperation } from "./fault-rules.ts";

const DRIP_INTERVAL_MS = 1000;

/** Carries out the faults of a plan in place of an answer, and lets go of the callers it holds at a stop. */
export class FaultInjector {
  readonly #plan: FaultPlan;
  readonly #held = new Set<Response>();
  #isStopped = false;

  constructor(plan: FaultPlan) {
    this.#plan = plan;
  }

  /** The fault that this call was given; undefined if it is to be served. */
  inject(operation: FaultOperation, response: Response): Fault | undefined {
    const fault = this.#isStopped ? undefined : this.#plan.next(operation);
    if (fault !== undefined) {
      this.#carryOut(fault, operation, response);
    }
    return fault;
  }

  /** Cuts every caller that is held; from now on all calls are served. */
  stop(): void {
    this.#isStopped = true;
    for (const response of this.#held) {
      response.destroy();
    }
  }

  #carryOut(fault: Fault, operation: FaultOperation, response: Response): void {
    switch (fault.kind) {
      case "recoverable_error":
        response.status(200).json(recoverableError());
        return;
      case "status":
        sendStatus(response, fault.status, fault.retryAfterS);
        return;
      case "hang":
        this.#hold(response);
        return;
      case "reset":
        response.socket?.resetAndDestroy();
        return;
      case "drip":
        this.#hold(response);
        drip(response, operation);
        return;
      default:
        fault satisfies never;
    }
  }

  #hold(response: Response): void {
    this.#held.add(response);
    response.once("close", () => this.#held.delete(response));
  }
}

function recoverableError() {
  return { ad_ack_id: randomUUID(), status: "recoverable_error", success: false } as const;
}

/** A problem outside the catalogue: what a caller gets on purpose must not look like an error of ours. */
function sendStatus(response: Response, status: number, retryAfterS: number | undefined): void {
  if (retryAfterS !== undefined) {
    response.set("Retry-After", String(retryAfterS));
  }
  const problem = {
    type: "about:blank",
    title: "Injected fault",
    status,
    code: "injected_fault",
    request_id: requestIdOf(response),
  };
  response.status(status).type(PROBLEM_CONTENT_TYPE).send(JSON.stringify(problem));
}

/** Sends the headers at once and the body byte by byte; a caller that waits long enough gets all of it. */
function drip(response: Response, operation: FaultOperation): void {
  const body = Buffer.from(
    JSON.stringify(operation === "acknowledge" ? recoverableError() : { status: "no_fill", success: false }),
  );
  response.status(operation === "acknowledge" ? 200 : 202).type("application/json");
  response.set("Content-Length", String(body.length)).flushHeaders();
  let sent = 0;
  const timer = setInterval(() => {
    response.write(body.subarray(sent, sent + 1));
    sent += 1;
    if (sent === body.length) {
      response.end();
    }
  }, DRIP_INTERVAL_MS);
  response.once("close", () => clearInterval(timer));
}
