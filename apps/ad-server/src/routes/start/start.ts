import { randomBytes, randomUUID } from "node:crypto";
import {
  adResponseIdSchema,
  type EnhancementResponse,
  type INJECTION_OUTCOMES,
  type InjectionOutcome,
  type InjectionRequest,
  injectionRequestSchema,
} from "@adrelay/contract";
import type { CallNotes } from "@adrelay/service-kit";
import {
  type DecisionRules,
  decideInjection,
  type InjectionDecision,
} from "../../injection/decide-injection.ts";
import type { ResponseStore } from "../../store/response-store.ts";
import { DEFAULT_WRAPPING, wrapPrompt } from "../../wrapping/wrap-prompt.ts";
import { sendStorageUnavailable } from "../answers.ts";
import type { Call, Operation } from "../endpoint.ts";

export interface StartDeps {
  readonly rules: DecisionRules;
  readonly store: Pick<ResponseStore, "recordInjection">;
  readonly notes: CallNotes;
  /** The time by which flights are judged, in milliseconds since 1970. */
  now(): number;
}

const STATUS_OF = { ok: 200, rejected: 201, no_fill: 202 } as const satisfies {
  [O in InjectionOutcome]: keyof typeof INJECTION_OUTCOMES;
};
const NONCE_BYTES = 16;
const NO_AD = { product_name: "", advertiser: "", landing_url: "", id: "" } as const;

/** POST /api/ad-injection/start/: an ad for a prompt, or none. It is in the books before the answer goes out. */
export function startOperation(deps: StartDeps): Operation<InjectionRequest> {
  return {
    name: "start",
    schema: injectionRequestSchema,
    members: ["prompt", "request_context", "request_configuration", "optional_context"],
    handle: (call) => start(deps, call),
  };
}

async function start({ rules, store, notes, now }: StartDeps, call: Call<InjectionRequest>): Promise<void> {
  const { body: request, publisher, response, startedAtMs } = call;
  const decision = decideInjection(request, rules, now());
  const id = adResponseIdSchema.parse(randomUUID());
  const recorded = await store.recordInjection({
    id,
    publisher,
    outcome: decision.outcome,
    ...servedIn(decision),
  });
  notes.add(response, { ad_response_id: id, ...noteOf(decision) });
  if (recorded.kind === "unavailable") {
    notes.add(response, { reason: recorded.reason });
    sendStorageUnavailable(response);
    return;
  }
  response.status(STATUS_OF[decision.outcome]).json({
    ad_request_id: randomUUID(),
    ad_response_id: id,
    status: decision.outcome,
    ...contentOf(decision, request),
    execution_time_ms: performance.now() - startedAtMs,
  } satisfies EnhancementResponse);
}

/** What the books keep of the ad: an answer is judged by the product as it was served. */
function servedIn(decision: InjectionDecision) {
  const {
    product_name: productName,
    advertiser,
    landing_url: landingUrl,
    id,
  } = decision.outcome === "ok" ? decision.ad : NO_AD;
  return { product: { productName, advertiser, landingUrl }, adId: id };
}

function contentOf(decision: InjectionDecision, request: InjectionRequest) {
  if (decision.outcome !== "ok") {
    return { success: false, enhanced_prompt: null, product_name: null } as const;
  }
  const type = request.request_configuration?.wrapping_type ?? DEFAULT_WRAPPING;
  const drawNonce = () => randomBytes(NONCE_BYTES).toString("hex");
  return {
    success: true,
    enhanced_prompt: wrapPrompt({ prompt: request.prompt, ad: decision.ad, type }, drawNonce),
    product_name: decision.ad.product_name,
  } as const;
}

function noteOf(decision: InjectionDecision) {
  switch (decision.outcome) {
    case "ok":
      return { outcome: "ok", ad: decision.ad.id };
    case "rejected":
      return { outcome: "rejected", topic: decision.topic };
    case "no_fill":
      return { outcome: "no_fill" };
    default:
      return decision satisfies never;
  }
}
