/**
 * One publisher's backend: obtains ads and acknowledges them, as well-behaved callers and as others do. What
 * has got no clear answer is sent again until it has one, as the contract asks.
 */
import { randomUUID } from "node:crypto";
import { ACKNOWLEDGE_PATH } from "@adrelay/contract";
import { type Answer, pause, type Random, type RelayCaller } from "@adrelay/testkit";
import { ACCOUNTS, type Account } from "./fault.ts";
import type { AdRecord, LaneRecords } from "./lane-record.ts";
import { CANARY } from "./log-watch.ts";
import { hashOf } from "./provider-books.ts";
import { ACK_DEADLINE_MS } from "./world.ts";

/** Callers give a frozen gateway up, and turn to the other one. */
const CALL_TIMEOUT_MS = 6000;
const PREFERENCES = ["respond-async", "respond-async", "respond-async", null, "wait=2"] as const;
const INJECTION_STATUSES = [200, 201, 202, 422];
/** Clear answers to an acknowledgment; all others, and none at all, mean: send it again. */
const CLEAR = new Set([200, 201, 404, 406, 409]);
const UNCLEAR = new Set([503]);

export interface Lane {
  readonly random: Random;
  readonly callers: Readonly<Record<Account, readonly RelayCaller[]>>;
  readonly records: LaneRecords;
  isOver(): boolean;
  count: number;
}

/** The answer, or undefined if there was none: refused connections, killed gateways, time-outs. */
async function ask(records: LaneRecords, call: (signal: AbortSignal) => Promise<Answer>) {
  try {
    return await call(AbortSignal.timeout(CALL_TIMEOUT_MS));
  } catch {
    records.counts.unanswered += 1;
    return undefined;
  }
}

/** An ad response to acknowledge: from an injection, and sometimes one that nobody gave out. */
export async function obtainAd({ random, callers, records }: Lane): Promise<AdRecord | undefined> {
  const account = random.pick(ACCOUNTS);
  if (random.chance(0.03)) {
    return records.add(randomUUID(), account, "unknown");
  }
  const caller = random.pick(callers[account]);
  const prompt = { prompt: `${CANARY}: which shoes?`, request_context: { session_id: "s", user_ip: CANARY } };
  const answer = await ask(records, (signal) => caller.inject({ signal }, prompt));
  if (answer === undefined) {
    return undefined;
  }
  records.counts.injections += 1;
  const id = answer.body["ad_response_id"];
  if (!INJECTION_STATUSES.includes(answer.status)) {
    records.faulty.push(`an injection got ${answer.status} ${answer.text.slice(0, 200)}`);
  }
  if (typeof id !== "string") {
    return undefined;
  }
  const isFallback = answer.headers.get("X-Adrelay-Fallback") !== null;
  return records.add(id, account, answer.status === 200 ? "filled" : isFallback ? "fallback" : "unfilled");
}

/** How publishers treat an ad that they were given; the shares are of all ads. */
export async function treatAd(lane: Lane, ad: AdRecord): Promise<void> {
  const { random } = lane;
  if (ad.origin === "unfilled" || ad.origin === "fallback") {
    // Rarely somebody acknowledges what was no ad.
    return random.chance(0.2) ? acknowledge(lane, ad, makeBody(lane, ad)) : undefined;
  }
  const roll = random.next();
  if (roll < 0.1 && ad.origin === "filled") {
    return;
  }
  if (roll < 0.2) {
    await pause(ACK_DEADLINE_MS + random.integer(500, 2500));
  }
  const body = makeBody(lane, ad);
  if (roll < 0.3) {
    // Twice, at the same time.
    await Promise.all([acknowledge(lane, ad, body), acknowledge(lane, ad, body)]);
  } else if (roll < 0.38) {
    // With another text at the same time: one of them at most may be taken.
    await Promise.all([acknowledge(lane, ad, body), acknowledge(lane, ad, makeBody(lane, ad))]);
  } else {
    await acknowledge(lane, ad, body);
    if (roll < 0.45) {
      await acknowledge(lane, ad, random.chance(0.5) ? body : makeBody(lane, ad));
    }
  }
}

/** A body that is hard to keep as it is: odd spaces, unknown members, an id in capitals, text of all kinds. */
function makeBody(lane: Lane, { id }: AdRecord): string {
  lane.count += 1;
  const { random, count } = lane;
  const written = random.chance(0.1) ? id.toUpperCase() : id;
  const text = `${CANARY} ${count} ${random.next()} "Velmora" \u{1f98a} \u00fcber\n\u2028${"x".repeat(random.integer(0, 2000))}`;
  const more = random.chance(0.3) ? ` ,"extra": [1,  2.0, {"b":1,"a":2}]` : "";
  return `{ "ad_response_id":"${written}",\t"llm_response": ${JSON.stringify(text)}${more}}`;
}

/** Sends one acknowledgment until it has a clear answer. */
async function acknowledge(lane: Lane, ad: AdRecord, body: string): Promise<void> {
  const { random, records } = lane;
  const hash = hashOf(body);
  const wanted = random.pick(PREFERENCES);
  for (;;) {
    const caller = random.pick(lane.callers[ad.account]);
    ad.tries += 1;
    ad.sent.add(hash);
    records.counts.acknowledgments += 1;
    const answer = await ask(records, (signal) =>
      caller.send(ACKNOWLEDGE_PATH, body, { headers: { Prefer: wanted }, signal }),
    );
    if (answer !== undefined) {
      note(records, ad, hash, answer);
      if (CLEAR.has(answer.status)) {
        return;
      }
    }
    if (lane.isOver()) {
      return;
    }
    await pause(random.integer(50, 400));
  }
}

function note(records: LaneRecords, ad: AdRecord, hash: string, answer: Answer): void {
  ad.answers.add(answer.status);
  if (answer.status < 300) {
    ad.accepted.add(hash);
    ad.ackIds.add(String(answer.body["ad_ack_id"]));
  } else if (!CLEAR.has(answer.status) && !UNCLEAR.has(answer.status)) {
    records.faulty.push(`an acknowledgment of ${ad.id} got ${answer.status} ${answer.text.slice(0, 200)}`);
  }
}
