/** The first injection and acknowledgment that `npm start` shows. */
import { ACKNOWLEDGE_PATH, ACKNOWLEDGMENTS_PATH, INJECTION_PATH } from "@adrelay/contract";
import type { RunFile } from "./home.ts";

/** The demo got an unexpected answer. The message contains it. */
export class DemoError extends Error {
  override readonly name = "DemoError";
}

export const DEMO_INJECTION = {
  prompt: "Which running shoes should I buy for my first marathon?",
  request_context: { session_id: "demo", user_agent: "adrelay-demo", user_ip: "203.0.113.7" },
  optional_context: { country: "US", age: 34 },
};

const CALL_TIMEOUT_MS = 5000;
const DELIVERY_TIMEOUT_MS = 10_000;
const LOOK_UP_INTERVAL_MS = 20;

type GatewayRun = Pick<RunFile, "gateway" | "apiKey" | "keyHeaders">;

type Fields = Readonly<Record<string, unknown>>;

interface Answer {
  readonly status: number;
  readonly body: Fields;
  /** Why the gateway answered in place of the ad service; null if the ad service answered. */
  readonly fallback: string | null;
}

/** Sends one real injection and its acknowledgment through the stack, and prints each step. */
export async function runDemo(run: GatewayRun, say: (line: string) => void): Promise<void> {
  const call = makeCall(run);
  say(`  POST ${INJECTION_PATH}  "${DEMO_INJECTION.prompt}"`);
  const injection = await call("POST", INJECTION_PATH, DEMO_INJECTION);
  if (injection.status !== 200) {
    throw new DemoError(describeUnfilled(injection));
  }
  const { ad_response_id: id, product_name: product, enhanced_prompt: prompt } = injection.body;
  say(`  ${injection.status}  ad for ${String(product)}, enhanced prompt:`);
  say(indent(String(prompt)));
  const text = `For a first marathon I'd look at the ${String(product)} (sponsored).`;
  const acknowledgment = { ad_response_id: id, llm_response: text };
  say(`  POST ${ACKNOWLEDGE_PATH}  (Prefer: respond-async)  "${text}"`);
  const accepted = await call("POST", ACKNOWLEDGE_PATH, acknowledgment, { Prefer: "respond-async" });
  if (accepted.status !== 201) {
    throw new DemoError(`the acknowledgment got ${accepted.status}: ${JSON.stringify(accepted.body)}`);
  }
  say(
    `  ${accepted.status}  ${String(accepted.body["status"])}: it is queued, and the relay will deliver it`,
  );
  await followDelivery(() => call("GET", `${ACKNOWLEDGMENTS_PATH}${String(id)}/`), say);
}

function describeUnfilled({ status, body, fallback }: Answer): string {
  if (status === 202) {
    return fallback === null
      ? "202 no_fill: the ad server has no ad for this prompt"
      : `202 no_fill from the gateway, because the ad server failed: ${fallback}`;
  }
  return `the injection got ${status}: ${JSON.stringify(body)}`;
}

/** Waits until the acknowledgment is delivered, and prints its verdict. */
export async function followDelivery(
  lookUp: () => Promise<{ status: number; body: Fields }>,
  say: (line: string) => void,
): Promise<void> {
  const deadlineMs = performance.now() + DELIVERY_TIMEOUT_MS;
  // The 201 said that it was queued. The delivery may be faster than our first look-up.
  say("  queued");
  for (;;) {
    const { body } = await lookUp();
    if (body["state"] === "delivered") {
      say(`  delivered  (${String(body["status"])}, attempts: ${String(body["attempts"])})`);
      return;
    }
    if (performance.now() > deadlineMs) {
      throw new DemoError(`the acknowledgment is still ${String(body["state"])}: ${JSON.stringify(body)}`);
    }
    await new Promise((done) => setTimeout(done, LOOK_UP_INTERVAL_MS));
  }
}

/** How the demos call the gateway. */
export function makeCall({ gateway, apiKey, keyHeaders }: GatewayRun) {
  return async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> => {
    const response = await fetch(gateway + path, {
      method,
      headers: { [keyHeaders.gateway]: apiKey, "Content-Type": "application/json", ...headers },
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const parsed: unknown = await response.json();
    const fields: Fields = typeof parsed === "object" && parsed !== null ? { ...parsed } : {};
    return { status: response.status, body: fields, fallback: response.headers.get("X-Adrelay-Fallback") };
  };
}

/** A text of several lines below a step of a demo. */
export function indent(text: string): string {
  return text
    .split("\n")
    .map((line) => `      ${line}`)
    .join("\n");
}
