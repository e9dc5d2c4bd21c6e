/** Examples of the service's two operations, which the gateway and the ad server share. */

const AD_RESPONSE_ID = "0b7a52c9-9c0e-4f6e-8d0a-2f6f3f0c7d11";

/** An injection's body with every member. Its prompt finds an ad in the catalogue of the ad server. */
export const INJECTION_EXAMPLES = {
  complete: {
    summary: "With all that is known of the user",
    value: {
      prompt: "Which running shoes should I buy for my first marathon?",
      request_context: { session_id: "s-1", user_agent: "Mozilla/5.0", user_ip: "203.0.113.7" },
      request_configuration: { wrapping_type: "xml" },
      optional_context: {
        country: "US",
        region: "California",
        city: "Fresno",
        asn: 64_496,
        age: 34,
        gender: "female",
      },
    },
  },
  least: {
    summary: "With the least that is needed",
    value: { prompt: "How do tides work?", request_context: { session_id: "s-2" } },
  },
};

export const ACKNOWLEDGMENT_EXAMPLES = {
  answer: {
    summary: "The text that the user was shown",
    value: { ad_response_id: AD_RESPONSE_ID, llm_response: "Try the Fleetfoot Marathon 3 (sponsored)." },
  },
  nothing: {
    summary: "The user was shown nothing",
    value: { ad_response_id: AD_RESPONSE_ID, llm_response: "" },
  },
};

export const ENHANCED_EXAMPLES = {
  ok: {
    summary: "An ad was found",
    value: {
      ad_request_id: "5b1c1c5c-5f5d-4d38-a9e7-57c6f9e7f001",
      ad_response_id: AD_RESPONSE_ID,
      status: "ok",
      execution_time_ms: 3.2,
      success: true,
      enhanced_prompt: "Which running shoes should I buy for my first marathon? <ad>…</ad>",
      product_name: "Fleetfoot Marathon 3",
    },
  },
};

/** The body of an answer without an ad. */
export const unenhancedExamples = (status: "rejected" | "no_fill") => ({
  [status]: {
    summary: "The user's prompt goes to the model unchanged",
    value: {
      ad_request_id: "5b1c1c5c-5f5d-4d38-a9e7-57c6f9e7f001",
      ad_response_id: AD_RESPONSE_ID,
      status,
      execution_time_ms: 1.1,
      success: false,
      enhanced_prompt: null,
      product_name: null,
    },
  },
});

export const acknowledgedExamples = (...statuses: readonly ("ok" | "no_ad_used" | "recoverable_error")[]) =>
  Object.fromEntries(
    statuses.map((status) => [
      status,
      {
        value: {
          ad_ack_id: "b6f0c1d2-3a4b-4c5d-8e6f-708192a3b4c5",
          status,
          success: status !== "recoverable_error",
        },
      },
    ]),
  );

/** The links of an ad response: what can be called with its id. */
export const adResponseLinks = (lookUp: string) => ({
  acknowledge: {
    operationId: "acknowledge",
    description: "Acknowledge the ad once the user was shown the answer.",
    requestBody: {
      ad_response_id: "$response.body#/ad_response_id",
      llm_response: "The answer of the model.",
    },
  },
  lookUp: {
    operationId: lookUp,
    description: "Look up what became of it.",
    parameters: { ad_response_id: "$response.body#/ad_response_id" },
  },
});
