/** Writes the bytes of an answer, whole or in small pieces, compressed or not, and keeps count of them. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { constants, createGzip, type Gzip } from "node:zlib";
import type { Response } from "express";
import type { SentRecord } from "./call-records.ts";

export interface WriterOptions {
  readonly isGzip?: boolean | undefined;
  /** Every chunk of the body has at most so many bytes. */
  readonly splitBytes?: number | undefined;
  readonly record: SentRecord | undefined;
}

export class AnswerWriter {
  readonly #response: Response;
  readonly #splitBytes: number;
  readonly #record: SentRecord | undefined;
  readonly #gzip: Gzip | undefined;

  constructor(response: Response, { isGzip = false, splitBytes = Infinity, record }: WriterOptions) {
    this.#response = response;
    this.#splitBytes = splitBytes;
    this.#record = record;
    this.#gzip = isGzip ? createGzip() : undefined;
    this.#gzip?.on("data", (bytes: Buffer) => this.#send(bytes));
    response.once("close", () => {
      this.#gzip?.destroy();
      if (record?.end === "running") {
        record.end = "caller_gone";
      }
    });
  }

  /** The caller has hung up, or the answer was cut off. */
  get isGone(): boolean {
    return this.#response.destroyed;
  }

  /** Sends status and headers at once. */
  begin(status: number, headers: Readonly<Record<string, string | number>>): void {
    if (this.isGone) {
      return;
    }
    const encoding = this.#gzip === undefined ? {} : { "Content-Encoding": "gzip" };
    if (this.#record !== undefined) {
      this.#record.status = status;
    }
    this.#response.writeHead(status, { ...headers, ...encoding });
    this.#response.flushHeaders();
  }

  /** Writes, and waits if the reader is slow. */
  async write(bytes: Uint8Array, text = ""): Promise<void> {
    if (this.isGone) {
      return;
    }
    this.#record?.addText(text);
    const gzip = this.#gzip;
    if (gzip === undefined) {
      this.#send(bytes);
    } else {
      gzip.write(bytes);
      // Without a flush, the compressor would keep the events back.
      await new Promise<void>((resolve) => {
        gzip.once("close", resolve);
        gzip.flush(constants.Z_SYNC_FLUSH, () => {
          gzip.off("close", resolve);
          resolve();
        });
      });
    }
    if (this.#response.writableNeedDrain) {
      await this.#drained();
    }
  }

  /** Ends the answer as it should end. */
  async end(): Promise<void> {
    const gzip = this.#gzip;
    if (gzip !== undefined && !gzip.destroyed) {
      await new Promise<void>((resolve) => {
        gzip.once("end", resolve).once("close", resolve);
        gzip.end();
      });
    }
    if (!this.isGone) {
      this.#close("complete");
      this.#response.end();
    }
  }

  /** Ends it early, but as if that were its end. */
  endEarly(): void {
    this.#close("fault");
    this.#response.end();
  }

  /** Closes the connection in the middle of the answer, once what was written is on its way. */
  async cut(): Promise<void> {
    await this.#flushed();
    this.#close("fault");
    this.#response.destroy();
  }

  /** As `cut`, but the peer gets a reset. Before `begin`, it gets nothing else. */
  async reset(): Promise<void> {
    await this.#flushed();
    this.#close("fault");
    this.#response.socket?.resetAndDestroy();
  }

  /** Sends nothing more and keeps the connection open, until the caller has had enough. */
  stall(): void {
    this.#close("fault");
  }

  #close(end: "complete" | "fault"): void {
    if (this.#record !== undefined && this.#record.end === "running") {
      this.#record.end = end;
    }
  }

  #send(bytes: Uint8Array): void {
    if (this.isGone) {
      return;
    }
    this.#record?.addBytes(bytes);
    for (let start = 0; start < bytes.length; start += this.#splitBytes) {
      this.#response.write(bytes.subarray(start, start + this.#splitBytes));
    }
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        this.#response.off("drain", end).off("close", end);
        resolve();
      };
      this.#response.on("drain", end).on("close", end);
    });
  }

  /** Node joins the writes of one turn of the event loop, and hands them over at its end. */
  async #flushed(): Promise<void> {
    await nextTurn();
    const { socket } = this.#response;
    if (socket !== null && !socket.destroyed) {
      // Nothing is written, but its callback comes behind those of all bytes before.
      await new Promise<void>((resolve) => socket.write("", () => resolve()));
    }
  }
}
