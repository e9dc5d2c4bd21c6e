/** An operator who erases acknowledgments in the midst of traffic and of other faults. */
import { uuidOfHex } from "@adrelay/contract";
import { pause } from "@adrelay/testkit";
import { ADMIN_TOKEN, type ChaosStack } from "./stack.ts";

const ANSWER_TIMEOUT_MS = 2000;

/** Erases one that is queued or dead, then waits, until the time is over. */
export async function eraseInTurn(stack: ChaosStack, pauseMs: number, durationMs: number): Promise<void> {
  const endsAtMs = performance.now() + durationMs;
  for (let turn = 0; performance.now() < endsAtMs; turn += 1) {
    const index = turn % 4 === 3 ? "dead" : "queued";
    const member = await stack.admin.zrandmember(`{adrelay:0}:${index}`);
    if (typeof member === "string") {
      await eraseOne(stack, uuidOfHex(member), turn);
    }
    await pause(pauseMs);
  }
}

async function eraseOne({ opsUrls, erasures }: ChaosStack, id: string, turn: number): Promise<void> {
  const url = `${opsUrls.get(turn % 2 === 0 ? "gateway-1" : "gateway-2")}/admin/v1/erasures`;
  erasures.set(id, erasures.get(id) ?? "asked");
  const answer = await fetch(url, {
    method: "POST",
    headers: { Authorization: `Bearer ${ADMIN_TOKEN}`, "Content-Type": "application/json" },
    body: JSON.stringify({ ad_response_id: id, reason: "chaos" }),
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  }).catch(() => undefined);
  if (answer?.status === 200) {
    erasures.set(id, "confirmed");
  }
}
