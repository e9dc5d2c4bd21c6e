/** What the publishers know: each ad response that they were given or asked about, and what they were told. */
import type { Account } from "./fault.ts";

export interface AdRecord {
  readonly id: string;
  readonly account: Account;
  /** Where the id is from: a 200, a 201 or 202 of the provider, a fallback of the gateway, or thin air. */
  readonly origin: "filled" | "unfilled" | "fallback" | "unknown";
  /** Acknowledgments sent, whatever came of them. */
  tries: number;
  /** Hashes of all bodies that were sent for it. */
  readonly sent: Set<string>;
  /** Hashes of the bodies that got a 2xx. */
  readonly accepted: Set<string>;
  /** All ad_ack_id in answers. */
  readonly ackIds: Set<string>;
  /** Statuses of answers, each once. */
  readonly answers: Set<number>;
}

/** Keeps the records of all lanes, and whatever answers no caller should get. */
export class LaneRecords {
  readonly ads = new Map<string, AdRecord>();
  readonly faulty: string[] = [];
  readonly counts = { injections: 0, acknowledgments: 0, unanswered: 0 };

  add(id: string, account: Account, origin: AdRecord["origin"]): AdRecord {
    const record: AdRecord = {
      id,
      account,
      origin,
      tries: 0,
      sent: new Set(),
      accepted: new Set(),
      ackIds: new Set(),
      answers: new Set(),
    };
    if (this.ads.has(id)) {
      this.faulty.push(`${id} was given out twice`);
    }
    this.ads.set(id, record);
    return record;
  }
}
