/**
 * The publishers' own records: each ad response that they got or asked about, what they sent, and how it was answered.
 */
import type { Account } from "./fault.ts";

export interface AdRecord {
  readonly id: string;
  readonly account: Account;
  /** Where the id comes from: a 200, a 201 or 202 of the provider, a fallback of the gateway, or made up. */
  readonly origin: "filled" | "unfilled" | "fallback" | "unknown";
  /** How many acknowledgments were sent, answered or not. */
  sendCount: number;
  /** Hashes of all bodies that were sent for it. */
  readonly sent: Set<string>;
  /** Hashes of the bodies that got a 2xx. */
  readonly accepted: Set<string>;
  /** All ad_ack_id in answers. */
  readonly ackIds: Set<string>;
  /** Statuses of answers, each once. */
  readonly answers: Set<number>;
}

export class PublisherRecords {
  readonly ads = new Map<string, AdRecord>();
  /** Answers that no caller may get. */
  readonly unexpected: string[] = [];
  readonly counts = { injections: 0, acknowledgments: 0, unanswered: 0 };

  add(id: string, account: Account, origin: AdRecord["origin"]): AdRecord {
    const record: AdRecord = {
      id,
      account,
      origin,
      sendCount: 0,
      sent: new Set(),
      accepted: new Set(),
      ackIds: new Set(),
      answers: new Set(),
    };
    if (this.ads.has(id)) {
      this.unexpected.push(`${id} was given to two callers`);
    }
    this.ads.set(id, record);
    return record;
  }
}
