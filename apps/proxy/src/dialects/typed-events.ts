/** Streams whose events have types: those of `/v1/messages` and `/v1/responses`. */
import { FAILED, isRecord, NOTHING } from "./answer-parts.ts";
import type { AnswerReader, EventReading } from "./dialect.ts";
import { parseJson } from "./json-places.ts";

/** Reads the events of a dialect in which each has a type, and keeps what it needs of earlier ones. */
export interface TypedEventReader {
  read(type: unknown, event: Readonly<Record<string, unknown>>): EventReading;
}

/** Reads a stream of such events until its end. `unread`: frequent types without anything that is read. */
export function readTypedEvents(reader: TypedEventReader, unread: ReadonlySet<string>): AnswerReader {
  let isOver = false;
  return {
    read({ event, data }) {
      if (isOver || (event !== undefined && unread.has(event))) return NOTHING;
      const parsed = parseJson(data);
      const reading = isRecord(parsed) ? reader.read(parsed["type"] ?? event, parsed) : NOTHING;
      // The error itself may be in any form.
      const read = event === "error" ? FAILED : reading;
      isOver = read.end !== undefined;
      return read;
    },
  };
}
