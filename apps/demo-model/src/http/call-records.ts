/** Keeps the latest calls, so that a test can read what the model received and what it sent. Off by default. */
import { createHash, type Hash } from "node:crypto";

/** How the answer to a call ended: `fault` by the call's own wish. */
export type AnswerEnd = "running" | "complete" | "fault" | "caller_gone";

/** What a call brought. */
export interface ReceivedCall {
  readonly method: string;
  readonly path: string;
  /** Name and value in turn, as they came. */
  readonly rawHeaders: readonly string[];
  readonly bytes: Buffer;
}

/** The answer's part of a record. It grows while the answer is sent. */
export class SentRecord {
  readonly #hash: Hash = createHash("sha256");
  #bytes = 0;
  #texts: string[] = [];
  status = 0;
  end: AnswerEnd = "running";

  addBytes(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
  }

  /** A text for the user. */
  addText(text: string): void {
    this.#texts.push(text);
  }

  show() {
    return {
      status: this.status,
      end: this.end,
      bytes: this.#bytes,
      sha256: this.#hash.copy().digest("hex"),
      text: this.#texts.join(""),
    };
  }
}

/** Bodies of all records together; beyond it the oldest records go. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;

export class CallRecords {
  readonly #callsMax: number;
  readonly #records: { readonly number: number; readonly call: ReceivedCall; readonly sent: SentRecord }[] =
    [];
  #count = 0;
  #bodyBytes = 0;

  constructor(callsMax: number) {
    this.#callsMax = callsMax;
  }

  get isOn(): boolean {
    return this.#callsMax > 0;
  }

  /** Begins the record of a call; undefined if none are kept. */
  add(call: ReceivedCall): SentRecord | undefined {
    if (!this.isOn) {
      return undefined;
    }
    const sent = new SentRecord();
    this.#count += 1;
    this.#records.push({ number: this.#count, call, sent });
    this.#bodyBytes += call.bytes.length;
    while (
      this.#records.length > this.#callsMax ||
      (this.#bodyBytes > BODY_BYTES_MAX && this.#records.length > 1)
    ) {
      this.#bodyBytes -= this.#records.shift()?.call.bytes.length ?? 0;
    }
    return sent;
  }

  /** The records with a number above `after`, the oldest first, and how many calls there were in all. */
  show(after = 0): object {
    const calls = this.#records
      .filter(({ number }) => number > after)
      .map(({ number, call, sent }) => ({
        number,
        method: call.method,
        path: call.path,
        raw_headers: call.rawHeaders,
        body_base64: call.bytes.toString("base64"),
        sent: sent.show(),
      }));
    return { count: this.#count, calls };
  }
}
