/**
 * The traffic of two publishers. Each lane is one loop of a backend: it gets an ad, acknowledges it as a well-behaved
 * or a careless caller does, and begins again. What got no clear answer is sent again until it has one, as the contract
 * asks.
 */
import { randomUUID } from "node:crypto";
import { ACKNOWLEDGE_PATH } from "@adrelay/contract";
import { type Answer, makeRandom, pause, type Random, type RelayCaller, relayCaller } from "@adrelay/testkit";
import { ACCOUNTS, type Account } from "./fault.ts";
import { CANARY } from "./log-watch.ts";
import { hashOf } from "./provider-records.ts";
import { type AdRecord, PublisherRecords } from "./publisher-records.ts";
import { ACK_DEADLINE_MS, type ChaosStack } from "./stack.ts";

/** A caller gives up on a frozen gateway after this time, and calls the other one. */
const CALL_TIMEOUT_MS = 6000;
const PREFERENCES = ["respond-async", "respond-async", "respond-async", null, "wait=2"] as const;
const INJECTION_STATUSES = [200, 201, 202, 422];
/** Clear answers to an acknowledgment. After any other answer, or none, it is sent again. */
const CLEAR = new Set([200, 201, 404, 406, 409]);
/** Nothing may have been stored. A Redis with hardly any memory has hardly any quota. */
const UNCLEAR = new Set([429, 503]);

export interface Traffic {
  readonly records: PublisherRecords;
  /** Gets no more ads. Resolves to whether each call got a clear answer within `timeoutMs`; then no call goes on. */
  end(timeoutMs: number): Promise<boolean>;
}

export interface TrafficOptions {
  readonly seed: number;
  readonly lanes: number;
  /** Between two ads of a lane. */
  readonly pauseMs: number;
}

interface Lane {
  readonly random: Random;
  readonly callers: Readonly<Record<Account, readonly RelayCaller[]>>;
  readonly records: PublisherRecords;
  isOver(): boolean;
  count: number;
}

export function startTraffic(stack: ChaosStack, { seed, lanes, pauseMs }: TrafficOptions): Traffic {
  const records = new PublisherRecords();
  const ending = new AbortController();
  const givingUp = new AbortController();
  const running = Array.from({ length: lanes }, async (_, at) => {
    const lane: Lane = {
      random: makeRandom(`lane ${seed} ${at}`),
      callers: { acme: callersOf(stack, "acme"), globe: callersOf(stack, "globe") },
      records,
      isOver: () => givingUp.signal.aborted,
      count: 0,
    };
    const open = new Set<Promise<void>>();
    while (!ending.signal.aborted) {
      const ad = await obtainAd(lane);
      if (ad !== undefined) {
        const work = treatAd(lane, ad).finally(() => open.delete(work));
        open.add(work);
      }
      await pause(pauseMs * lane.random.between(0.5, 1.5));
    }
    await Promise.all(open);
  });
  return {
    records,
    end: async (timeoutMs) => {
      ending.abort();
      const done = Promise.all(running).then(() => true);
      const inTime = await Promise.race([done, pause(timeoutMs).then(() => false)]);
      givingUp.abort();
      return inTime;
    },
  };
}

function callersOf({ gatewayUrls, publishers }: ChaosStack, account: Account): readonly RelayCaller[] {
  return gatewayUrls.map((url) => relayCaller(url, () => publishers.keyOf(account)));
}

/** The answer. Undefined if there was none: a refused connection, a killed gateway, a time-out. */
async function answerOf(records: PublisherRecords, call: (signal: AbortSignal) => Promise<Answer>) {
  try {
    return await call(AbortSignal.timeout(CALL_TIMEOUT_MS));
  } catch {
    records.counts.unanswered += 1;
    return undefined;
  }
}

/** Gets an ad response to acknowledge: from an injection, or sometimes a made-up id. */
async function obtainAd({ random, callers, records }: Lane): Promise<AdRecord | undefined> {
  const account = random.pick(ACCOUNTS);
  if (random.chance(0.03)) {
    return records.add(randomUUID(), account, "unknown");
  }
  const caller = random.pick(callers[account]);
  const prompt = { prompt: `${CANARY}: which shoes?`, request_context: { session_id: "s", user_ip: CANARY } };
  const answer = await answerOf(records, (signal) => caller.inject({ signal }, prompt));
  if (answer === undefined) {
    return undefined;
  }
  records.counts.injections += 1;
  const id = answer.body["ad_response_id"];
  if (!INJECTION_STATUSES.includes(answer.status)) {
    records.unexpected.push(`an injection got ${answer.status} ${answer.text.slice(0, 200)}`);
  }
  if (typeof id !== "string") {
    return undefined;
  }
  const isFallback = answer.headers.get("X-Adrelay-Fallback") !== null;
  return records.add(id, account, answer.status === 200 ? "filled" : isFallback ? "fallback" : "unfilled");
}

/** What a publisher does with an ad response. The shares are of all ads. */
async function treatAd(lane: Lane, ad: AdRecord): Promise<void> {
  const { random } = lane;
  if (ad.origin === "unfilled" || ad.origin === "fallback") {
    // Some callers acknowledge a response that has no ad.
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
    // With another text at the same time: at most one of them may be accepted.
    await Promise.all([acknowledge(lane, ad, body), acknowledge(lane, ad, makeBody(lane, ad))]);
  } else {
    await acknowledge(lane, ad, body);
    if (roll < 0.45) {
      await acknowledge(lane, ad, random.chance(0.5) ? body : makeBody(lane, ad));
    }
  }
}

/** A body that is easily changed by accident: odd spaces, unknown members, an id in capitals, text of all kinds. */
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
  const preference = random.pick(PREFERENCES);
  for (;;) {
    const caller = random.pick(lane.callers[ad.account]);
    ad.sendCount += 1;
    ad.sent.add(hash);
    records.counts.acknowledgments += 1;
    const answer = await answerOf(records, (signal) =>
      caller.send(ACKNOWLEDGE_PATH, body, { headers: { Prefer: preference }, signal }),
    );
    if (answer !== undefined) {
      recordAnswer(records, ad, hash, answer);
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

function recordAnswer(records: PublisherRecords, ad: AdRecord, hash: string, answer: Answer): void {
  ad.answers.add(answer.status);
  if (answer.status < 300) {
    ad.accepted.add(hash);
    ad.ackIds.add(String(answer.body["ad_ack_id"]));
  } else if (!CLEAR.has(answer.status) && !UNCLEAR.has(answer.status)) {
    records.unexpected.push(
      `an acknowledgment of ${ad.id} got ${answer.status} ${answer.text.slice(0, 200)}`,
    );
  }
}
