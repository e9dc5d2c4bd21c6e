/** Faults and bounds of the copy that is read beside a stream. What is read of it: see conformance.test.ts. */
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type CopyReader, openCopyReader } from "./copy-reader.ts";
import { decodeBody } from "./decode-body.ts";
import { dialectNamed } from "./index.ts";

function delta(content: string): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
}

interface Copy {
  readonly reader: CopyReader;
  readonly texts: string[];
  readonly offsets: number[];
  readonly faults: string[];
}

function openCopy(encoding?: string, eventSizeMax = 1000): Copy {
  const copy = { texts: [] as string[], offsets: [] as number[], faults: [] as string[] };
  const reader = openCopyReader({
    answer: dialectNamed("chat_completions").newReader(),
    encoding,
    eventSizeMax,
    onReading: ({ text }, endOffset) => {
      copy.texts.push(text);
      copy.offsets.push(endOffset);
    },
    onFault: ({ kind }) => copy.faults.push(kind),
  });
  return { reader, ...copy };
}

function ended({ reader }: Copy): Promise<void> {
  return new Promise((resolve) => reader.end(resolve));
}

/** Bytes that begin no stream of any encoding. */
const NOISE = Buffer.alloc(5000, 0xff);

describe("a fault is told once, and nothing is read after it", () => {
  test.each([undefined, "gzip"])("an event that is too large, with the encoding %s", async (encoding) => {
    const copy = openCopy(encoding);
    const bytes = Buffer.from(delta("one") + delta("x".repeat(100_000)) + delta("two"));
    const encoded = encoding === undefined ? bytes : gzipSync(bytes);
    for (let at = 0; at < encoded.length; at += 100) copy.reader.write(encoded.subarray(at, at + 100));
    await ended(copy);
    copy.reader.write(Buffer.from(delta("three")));
    expect(copy).toMatchObject({ texts: ["one"], faults: ["event_too_large"] });
  });

  test("an encoding that is unknown", async () => {
    const copy = openCopy("gzip, br");
    copy.reader.write(Buffer.from(delta("one")));
    await ended(copy);
    copy.reader.close();
    expect(copy).toMatchObject({ texts: [], faults: ["unknown_encoding"] });
  });

  test.each(["gzip", "deflate", "br", "zstd"])("bytes that aren't of the encoding %s", async (encoding) => {
    const copy = openCopy(encoding);
    for (let at = 0; at < NOISE.length; at += 100) copy.reader.write(NOISE.subarray(at, at + 100));
    await ended(copy);
    expect(copy).toMatchObject({ texts: [], faults: ["broken_encoding"] });
  });

  test("more bytes at once than are decoded", async () => {
    const copy = openCopy("gzip");
    for (let i = 0; i < 10; i++) copy.reader.write(Buffer.alloc(1024 * 1024));
    await ended(copy);
    expect(copy.faults).toEqual(["decoder_overrun"]);
  });
});

test.each([
  ["of one endless event", "x", "event_too_large", 100 * 1024 * 1024],
  ["of small events", ": x\n\n", "decoded_too_large", 100 * 1024 * 1024],
] as const)("a bomb %s is given up, with little time and memory", async (_, text, fault, sizeBytes) => {
  const bomb = gzipSync(Buffer.alloc(sizeBytes, text), { level: 1 });
  const copy = openCopy("gzip");
  const { user } = process.cpuUsage();
  copy.reader.write(bomb);
  await ended(copy);
  expect(copy.faults).toEqual([fault]);
  expect(process.cpuUsage().user - user).toBeLessThan(5_000_000);
});

test("an encoded stream that is cut is read up to the cut", async () => {
  const copy = openCopy("gzip");
  const bytes = gzipSync(Buffer.from(delta("one") + delta("two")));
  copy.reader.write(bytes.subarray(0, -12));
  await ended(copy);
  expect(copy.faults).toEqual([]);
  expect(copy.texts.join("").startsWith("one")).toBe(true);
});

test("an event's end is never told before the chunk that has its last byte", async () => {
  const copy = openCopy("gzip");
  // Each part is a whole member of the gzip stream, so that each event's place in the encoded bytes is known.
  const members = ["one", "two", "three"].map((text) => gzipSync(Buffer.from(delta(text))));
  const ends = members.map((_, i) => Buffer.concat(members.slice(0, i + 1)).length);
  for (const member of members) copy.reader.write(member);
  await ended(copy);
  expect(copy.texts).toEqual(["one", "two", "three"]);
  copy.offsets.forEach((offset, i) => {
    expect(offset).toBeGreaterThanOrEqual(ends[i] ?? 0);
  });
  expect(copy.offsets.at(-1)).toBe(ends.at(-1));
});

test.each([undefined, "gzip"])("nothing is called after close, with the encoding %s", async (encoding) => {
  const copy = openCopy(encoding);
  const bytes = Buffer.from(delta("one"));
  copy.reader.write(encoding === undefined ? bytes.subarray(0, 10) : gzipSync(bytes));
  copy.reader.close();
  copy.reader.write(encoding === undefined ? bytes.subarray(10) : NOISE);
  await ended(copy);
  expect(copy).toMatchObject({ texts: [], faults: [] });
});

test("a whole body is decoded up to a size", async () => {
  const body = Buffer.from("x".repeat(1000));
  expect(await decodeBody(gzipSync(body), "gzip", 1000)).toEqual(body);
  expect(await decodeBody(gzipSync(body), "gzip", 999)).toBeUndefined();
  expect(await decodeBody(body, undefined, 1000)).toBe(body);
  expect(await decodeBody(body, "identity", 999)).toBeUndefined();
  expect(await decodeBody(body, "gzip", 1000)).toBeUndefined();
  expect(await decodeBody(body, "compress", 1000)).toBeUndefined();
});
