import { expect, test } from "vitest";
import { judgeDelivery, judgeInjection } from "./judge-replies.ts";

const AD = { ad_response_id: "0b0f7a52-5c1c-4a0b-9a55-2f5a5f7b8f10", enhanced_prompt: "with an ad" };
const ACKNOWLEDGED = { ad_ack_id: "a-1", status: "no_ad_used" };

const answered = (body: unknown, durationMs: number) =>
  ({
    reply: { kind: "answered", status: 200, body, retryAfter: undefined },
    durationMs,
    limitMs: 2000,
  }) as const;

test.each([
  [1500, "ok", "an ad."],
  [1501, "warn", "It is close to the limit of 2000 ms (INJECTION_TIMEOUT_MS)."],
  [2000, "warn", "It is close to the limit of 2000 ms (INJECTION_TIMEOUT_MS)."],
  [2001, "fail", "The ad is lost."],
])("an ad after %d of 2000 ms is judged %s", (durationMs, status, text) => {
  const judgement = judgeInjection(answered(AD, durationMs));
  expect(judgement).toEqual({ status, detail: expect.stringContaining(text) });
});

test.each([
  [1500, "ok", "delivered (no_ad_used)."],
  [1501, "warn", "It is close to the limit of 2000 ms (DELIVERY_TIMEOUT_MS)."],
  [2001, "fail", "it is sent again with the same Idempotency-Key"],
])("an acknowledgment that is answered after %d of 2000 ms is judged %s", (durationMs, status, text) => {
  const judgement = judgeDelivery(answered(ACKNOWLEDGED, durationMs));
  expect(judgement).toEqual({ status, detail: expect.stringContaining(text) });
});
