/** Sizes in settings: `64MB`, or a number of bytes. Units are those of Redis' maxmemory, as in quotas. */
import { z } from "zod";

const UNIT_BYTES: Readonly<Record<string, number>> = { "": 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 };

/** Parses a size to whole bytes; undefined if the text isn't one. */
function parseSizeBytes(text: string): number | undefined {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?) ?([KMG]B)?$/i.exec(text) ?? [];
  const factor = UNIT_BYTES[unit.toUpperCase()];
  return number === undefined || factor === undefined ? undefined : Math.round(Number(number) * factor);
}

/** A size between two bounds, both included, as whole bytes. */
export function sizeBetween(minBytes: number, maxBytes: number) {
  return z.string().transform((text, context) => {
    const bytes = parseSizeBytes(text);
    if (bytes === undefined) {
      context.addIssue({ code: "custom", message: "must be a size such as 64MB, or a number of bytes" });
      return z.NEVER;
    }
    if (bytes < minBytes || bytes > maxBytes) {
      const message = `must be at least ${minBytes} and at most ${maxBytes} bytes`;
      context.addIssue({ code: "custom", message });
      return z.NEVER;
    }
    return bytes;
  });
}
