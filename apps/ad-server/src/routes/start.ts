import { randomBytes, randomUUID } from "node:crypto";
import {
  type AdResponseId,
  adResponseIdSchema,
  type EnhancementResponse,
  type INJECTION_OUTCOMES,
  type InjectionOutcome,
  type InjectionRequest,
  injectionRequestSchema,
  unreadableAttributes,
} from "@adrelay/contract";
import { addToRequestLog } from "@adrelay/service-kit";
import {
  type DecisionRules,
  decideInjection,
  type InjectionDecision,
} from "../injection/decide-injection.ts";
import { DEFAULT_WRAPPING, wrapPrompt } from "../injection/wrap-prompt.ts";
import type { AdServerMetrics } from "../metrics.ts";
import { type Offer, offerTermsOf, type Pacing } from "../money/auction.ts";
import { sessionHashOf } from "../store/keys.ts";
import type { Stored } from "../store/redis-store.ts";
import type { ResponseStore } from "../store/response-store.ts";
import { type Call, type Operation, sendStorageUnavailable } from "./endpoint.ts";

export interface StartDeps {
  readonly rules: DecisionRules;
  readonly pacing: Pacing;
  readonly store: Pick<ResponseStore, "recordInjection">;
  readonly metrics: Pick<AdServerMetrics, "countUnreadable">;
  /** The current time in milliseconds since 1970, for the ads' flights. */
  now(): number;
}

const STATUS_OF = { ok: 200, rejected: 201, no_fill: 202 } as const satisfies {
  [O in InjectionOutcome]: keyof typeof INJECTION_OUTCOMES;
};
const NONCE_BYTES = 16;
/** The members that an ad is chosen by. None may be repeated: a second `age` must not turn a child into an adult. */
const MEMBERS = [
  "prompt",
  "request_context",
  "request_configuration",
  "optional_context",
  ...["session_id", "user_agent", "user_ip"].map((name) => `request_context.${name}`),
  "request_configuration.wrapping_type",
  ...["country", "region", "city", "asn", "age", "gender"].map((name) => `optional_context.${name}`),
] as const;

/** POST /api/ad-injection/start/: an ad for a prompt, or none. It is booked before the answer goes out. */
export function startOperation(deps: StartDeps): Operation<InjectionRequest> {
  return {
    name: "start",
    schema: injectionRequestSchema,
    members: MEMBERS,
    handle: (call) => start(deps, call),
  };
}

/** The final outcome of an injection, after the store has checked budgets, caps and pacing. */
type Injection =
  | Exclude<InjectionDecision, { outcome: "auction" }>
  | { readonly outcome: "ok"; readonly sold: Offer };

async function start(deps: StartDeps, call: Call<InjectionRequest>): Promise<void> {
  const { body: request, response, startedAtMs } = call;
  reportUnreadable(deps, call);
  const id = adResponseIdSchema.parse(randomUUID());
  const decision = decideInjection(request, deps.rules, { id, nowMs: deps.now() });
  const booked = await book(deps, call, { id, decision });
  addToRequestLog(response, { ad_response_id: id });
  if (booked.kind === "unavailable") {
    addToRequestLog(response, { outcome: decision.outcome, reason: booked.reason });
    sendStorageUnavailable(response);
    return;
  }
  const injection = booked.value;
  addToRequestLog(response, logFieldsOf(injection));
  response.status(STATUS_OF[injection.outcome]).json({
    ad_request_id: randomUUID(),
    ad_response_id: id,
    status: injection.outcome,
    ...contentOf(injection, request),
    execution_time_ms: performance.now() - startedAtMs,
  } satisfies EnhancementResponse);
}

/** Shows the operator which attributes are unknown because of how callers send them. Values are never logged. */
function reportUnreadable({ metrics }: StartDeps, { sent, body, response }: Call<InjectionRequest>): void {
  const unreadable = unreadableAttributes(sent, body);
  if (unreadable.length > 0) {
    addToRequestLog(response, { unreadable: unreadable.map(({ path }) => path) });
    metrics.countUnreadable(unreadable.map(({ name }) => name));
  }
}

/** Sells the first offer that has budget, cap and pacing left, and books the injection, in one step. */
async function book(
  { store, pacing }: StartDeps,
  { body, publisher }: Call<InjectionRequest>,
  { id, decision }: { id: AdResponseId; decision: InjectionDecision },
): Promise<Stored<Injection>> {
  const offers = decision.outcome === "auction" ? decision.offers : [];
  const session = sessionHashOf(publisher, body.request_context.session_id);
  const recorded = await store.recordInjection({
    id,
    publisher,
    session,
    decision: decision.outcome,
    offers: offers.map((offer) => offerTermsOf(offer, pacing)),
  });
  if (recorded.kind === "unavailable") {
    return recorded;
  }
  const sold = recorded.value === undefined ? undefined : offers[recorded.value];
  return { kind: "ok", value: injectionOf(decision, sold) };
}

function injectionOf(decision: InjectionDecision, sold: Offer | undefined): Injection {
  if (decision.outcome !== "auction") {
    return decision;
  }
  return sold === undefined ? { outcome: "no_fill" } : { outcome: "ok", sold };
}

function contentOf(injection: Injection, request: InjectionRequest) {
  if (injection.outcome !== "ok") {
    return { success: false, enhanced_prompt: null, product_name: null } as const;
  }
  const { ad } = injection.sold;
  const type = request.request_configuration?.wrapping_type ?? DEFAULT_WRAPPING;
  const drawNonce = () => randomBytes(NONCE_BYTES).toString("hex");
  return {
    success: true,
    enhanced_prompt: wrapPrompt({ prompt: request.prompt, ad, type }, drawNonce),
    product_name: ad.product_name,
  } as const;
}

function logFieldsOf(injection: Injection) {
  switch (injection.outcome) {
    case "ok":
      return { outcome: "ok", ad: injection.sold.ad.id, price_micros: injection.sold.priceMicros };
    case "rejected":
      return { outcome: "rejected", topic: injection.topic };
    case "no_fill":
      return { outcome: "no_fill" };
    default:
      return injection satisfies never;
  }
}
