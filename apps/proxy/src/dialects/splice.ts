import type { Place } from "./dialect.ts";

/** The body with `text`, as a JSON string, in a place. All other bytes stay as they came. */
export function splice(body: Buffer, place: Place, text: string): Buffer {
  return Buffer.concat([
    body.subarray(0, place.start),
    Buffer.from(JSON.stringify(text)),
    body.subarray(place.end),
  ]);
}
