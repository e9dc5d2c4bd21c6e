/** Sends answers: at their pace, and with the faults that the call asks for. */
import { setTimeout as pause } from "node:timers/promises";
import type { SseEvent } from "../dialects/dialect.ts";
import type { CallFaults, EarlyEnd } from "../faults/call-faults.ts";
import type { AnswerWriter } from "./answer-writer.ts";

export interface StreamPlan {
  readonly events: Iterable<SseEvent>;
  readonly errorEvent: () => SseEvent;
  readonly headers: Readonly<Record<string, string>>;
  readonly delayMs: number;
  readonly faults: CallFaults;
}

const STREAM_HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-cache",
} as const;

/** Sends a stream, event by event. */
export async function sendStream(writer: AnswerWriter, plan: StreamPlan): Promise<void> {
  const { events, errorEvent, headers, delayMs, faults } = plan;
  writer.begin(200, { ...STREAM_HEADERS, ...headers });
  let count = 0;
  for (const event of events) {
    if (faults.lacksLast === true && event.isLast === true) {
      continue;
    }
    if (faults.earlyEnd?.after === count) {
      break;
    }
    if (delayMs > 0 && count > 0) {
      await pause(delayMs);
    }
    if (writer.isGone) {
      return;
    }
    await writer.write(bytesOf(event), event.text);
    count += 1;
  }
  if (faults.earlyEnd?.after !== count) {
    await writer.end();
  } else if (faults.earlyEnd.how === "error_event") {
    await writer.write(bytesOf(errorEvent()));
    await writer.end();
  } else {
    await endEarly(writer, faults.earlyEnd.how);
  }
}

function bytesOf({ name, data }: SseEvent): Buffer {
  return Buffer.from(`${name === undefined ? "" : `event: ${name}\n`}data: ${data}\n\n`);
}

/** Sends JSON. Early ends count its bytes; those that need a stream change nothing. */
export async function sendJson(
  writer: AnswerWriter,
  answer: {
    readonly status: number;
    readonly value: object;
    readonly text?: string;
    readonly headers?: Record<string, string>;
  },
  { earlyEnd, isGzip }: CallFaults = {},
): Promise<void> {
  const { status, value, text, headers } = answer;
  const bytes = Buffer.from(JSON.stringify(value));
  const length = isGzip === true ? {} : { "Content-Length": bytes.length };
  writer.begin(status, { "Content-Type": "application/json", ...length, ...headers });
  if (earlyEnd === undefined || earlyEnd.how === "end" || earlyEnd.how === "error_event") {
    await writer.write(bytes, text);
    await writer.end();
    return;
  }
  await writer.write(bytes.subarray(0, earlyEnd.after));
  await endEarly(writer, earlyEnd.how);
}

async function endEarly(writer: AnswerWriter, how: Exclude<EarlyEnd["how"], "error_event">): Promise<void> {
  switch (how) {
    case "cut":
      return await writer.cut();
    case "reset":
      return await writer.reset();
    case "end":
      return writer.endEarly();
    case "stall":
      return writer.stall();
    default:
      how satisfies never;
  }
}
