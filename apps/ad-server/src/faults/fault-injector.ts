import { randomUUID } from "node:crypto";
import { PROBLEM_CONTENT_TYPE } from "@adrelay/contract";
import { requestIdOf } from "@adrelay/service-kit";
import type { Response } from "express";
import type { Fault, FaultOperation, FaultPlan } from "./fault-rules.ts";

const DRIP_INTERVAL_MS = 1000;

/**
 * Carries out the faults of a plan instead of answering. At a stop it disconnects the callers that it keeps waiting.
 */
export class FaultInjector {
  readonly #plan: FaultPlan;
  readonly #waiting = new Set<Response>();
  #isStopped = false;

  constructor(plan: FaultPlan) {
    this.#plan = plan;
  }

  /** Carries out this call's fault, if it has one. Returns undefined if the call is to be served. */
  inject(operation: FaultOperation, response: Response): Fault | undefined {
    const fault = this.#isStopped ? undefined : this.#plan.next(operation);
    if (fault !== undefined) {
      this.#carryOut(fault, operation, response);
    }
    return fault;
  }

  /** Disconnects every waiting caller. From now on all calls are served. */
  stop(): void {
    this.#isStopped = true;
    for (const response of this.#waiting) {
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
        this.#keepWaiting(response);
        return;
      case "reset":
        response.socket?.resetAndDestroy();
        return;
      case "drip":
        this.#keepWaiting(response);
        drip(response, operation);
        return;
      default:
        fault satisfies never;
    }
  }

  #keepWaiting(response: Response): void {
    this.#waiting.add(response);
    response.once("close", () => this.#waiting.delete(response));
  }
}

function recoverableError() {
  return { ad_ack_id: randomUUID(), status: "recoverable_error", success: false } as const;
}

/** The code is in no catalogue of ours: an injected fault must not look like a real error. */
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

/**
 * Sends the headers immediately and then one byte of the body a second. A caller that waits long enough gets all of
 * it.
 */
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
