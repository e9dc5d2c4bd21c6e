/** One suite over the three dialects: what must be read of each stream in test/testdata/streams, however its bytes come. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { DIALECTS, type StepEnd } from "@adrelay/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type CopyFault, openCopyReader } from "./copy-reader.ts";
import type { Dialect, EventReading } from "./dialect.ts";
import { dialectNamed } from "./index.ts";

const FOLDER = fileURLToPath(new URL("../../test/testdata/streams/", import.meta.url));

interface Expected {
  readonly text: string;
  readonly callIds: readonly string[];
  readonly end?: StepEnd["kind"];
}

interface Recording {
  readonly dialect: Dialect;
  readonly name: string;
  readonly stream: string;
  readonly expected: Expected;
  readonly answer: Buffer | undefined;
}

const RECORDINGS: readonly Recording[] = DIALECTS.flatMap((dialect) => {
  const files = readdirSync(`${FOLDER}${dialect}`);
  return files
    .filter((file) => file.endsWith(".sse"))
    .map((file) => {
      const name = file.replace(".sse", "");
      const path = `${FOLDER}${dialect}/${name}`;
      const hasAnswer = files.includes(`${name}.answer.json`);
      return {
        dialect: dialectNamed(dialect),
        name: `${dialect}/${name}`,
        stream: readFileSync(`${path}.sse`, "utf8"),
        // The files are ours, and a wrong one fails its test.
        expected: JSON.parse(readFileSync(`${path}.expected.json`, "utf8")) as Expected,
        answer: hasAnswer ? readFileSync(`${path}.answer.json`) : undefined,
      };
    });
});

interface Copied {
  readonly readings: { readonly reading: EventReading; readonly endOffset: number }[];
  readonly faults: CopyFault[];
}

async function copy(dialect: Dialect, chunks: readonly Buffer[], encoding?: string): Promise<Copied> {
  const copied: Copied = { readings: [], faults: [] };
  const reader = openCopyReader({
    answer: dialect.newReader(),
    encoding,
    onReading: (reading, endOffset) => copied.readings.push({ reading, endOffset }),
    onFault: (fault) => copied.faults.push(fault),
  });
  for (const chunk of chunks) reader.write(chunk);
  await new Promise<void>((resolve) => reader.end(resolve));
  reader.close();
  return copied;
}

function sum({ readings }: Copied): Expected {
  const parts = readings.map(({ reading }) => reading);
  const end = parts.find((part) => part.end !== undefined)?.end?.kind;
  const text = parts.map((part) => part.text).join("");
  const callIds = parts.flatMap((part) => part.callIds);
  return end === undefined ? { text, callIds } : { text, callIds, end };
}

function split(bytes: Buffer, size: number): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
  return chunks;
}

describe.each(RECORDINGS)("$name", ({ dialect, stream, expected, answer }) => {
  const bytes = Buffer.from(stream);

  test("is read whole, and nothing follows its end", async () => {
    const copied = await copy(dialect, [bytes]);
    expect(sum(copied)).toEqual(expected);
    expect(copied.faults).toEqual([]);
    const ends = copied.readings.map(({ reading }) => reading.end !== undefined);
    expect(ends.indexOf(true)).toBe(expected.end === undefined ? -1 : ends.length - 1);
  });

  test("is read alike in chunks of any size", async () => {
    for (const size of [1, 2, 3, 7, 64, 1000]) {
      expect(sum(await copy(dialect, split(bytes, size)))).toEqual(expected);
    }
  });

  test("is read alike if it is split at any one byte", async () => {
    for (let at = 0; at <= bytes.length; at++) {
      expect(sum(await copy(dialect, [bytes.subarray(0, at), bytes.subarray(at)]))).toEqual(expected);
    }
  });

  test.each([
    ["CRLF", stream.replaceAll("\n", "\r\n")],
    ["a byte order mark", `\uFEFF${stream}`],
    ["comments", stream.replaceAll("\n\n", "\n\n: keep-alive\n\n")],
    ["data of several lines", stream.replaceAll(',"', ',\ndata: "')],
    ["no space after the colon", stream.replaceAll("\ndata: ", "\ndata:").replace(/^data: /, "data:")],
  ])("is read alike with %s", async (_form, changed) => {
    const changedBytes = Buffer.from(changed);
    for (const size of [changedBytes.length, 1, 5]) {
      expect(sum(await copy(dialect, split(changedBytes, size)))).toEqual(expected);
    }
  });

  test.each([
    ["gzip", gzipSync(bytes)],
    ["x-gzip", gzipSync(bytes)],
    ["deflate", deflateSync(bytes)],
    ["br", brotliCompressSync(bytes)],
    ["zstd", zstdCompressSync(bytes)],
  ])("is read alike with the encoding %s", async (encoding, encoded) => {
    for (const size of [encoded.length, 11]) {
      const copied = await copy(dialect, split(encoded, size), encoding);
      expect(sum(copied)).toEqual(expected);
      expect(copied.faults).toEqual([]);
      expect(copied.readings.every(({ endOffset }) => endOffset <= encoded.length)).toBe(true);
    }
  });

  test("an event's end is told with its last byte", async () => {
    const copied = await copy(dialect, split(bytes, 1));
    for (const { endOffset } of copied.readings) {
      expect(bytes.subarray(endOffset - 2, endOffset).toString()).toBe("\n\n");
    }
  });

  test("what was read of a beginning is a beginning of what is read", async () => {
    const cuts = fc.integer({ min: 0, max: bytes.length });
    await fc.assert(
      fc.asyncProperty(cuts, async (at) => {
        const read = sum(await copy(dialect, [bytes.subarray(0, at)]));
        expect(expected.text.startsWith(read.text)).toBe(true);
        expect(expected.callIds.slice(0, read.callIds.length)).toEqual(read.callIds);
      }),
      { numRuns: 30 },
    );
  });

  test.runIf(answer !== undefined)("is read alike if it isn't streamed", () => {
    const read = dialect.readAnswer(answer ?? Buffer.alloc(0));
    const isError = expected.end === "failed" && read.text === "";
    expect({ ...read, end: read.end?.kind }).toEqual(
      isError ? { text: "", callIds: [], end: "failed" } : expected,
    );
  });
});

describe.each(DIALECTS)("%s", (name) => {
  const dialect = dialectNamed(name);

  test("no event makes a reader throw", () => {
    const types = fc.constantFrom(
      "content_block_delta",
      "content_block_start",
      "message_delta",
      "response.output_item.done",
      "response.output_text.delta",
    );
    const members = fc.constantFrom("delta", "choices", "item", "content_block", "message", "error");
    const events = fc.oneof(
      fc.string(),
      fc.json(),
      fc
        .tuple(types, members, fc.jsonValue())
        .map(([type, key, value]) => JSON.stringify({ type, [key]: value })),
      fc.jsonValue().map((value) => JSON.stringify({ choices: [{ index: 0, delta: value }] })),
      fc
        .jsonValue()
        .map((value) => JSON.stringify({ choices: [{ delta: { content: value, tool_calls: [value] } }] })),
    );
    fc.assert(
      fc.property(
        fc.array(events, { maxLength: 20 }),
        fc.option(fc.string(), { nil: undefined }),
        (all, event) => {
          const reader = dialect.newReader();
          for (const data of all) {
            const reading = reader.read({ event, data });
            expect(typeof reading.text).toBe("string");
            expect(reading.callIds.every((id) => typeof id === "string")).toBe(true);
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  test("no answer makes the reading throw, and each has an end", () => {
    const answers = fc.oneof(
      fc.string(),
      fc.json(),
      fc
        .tuple(fc.constantFrom("choices", "output", "content"), fc.jsonValue())
        .map(([key, value]) => JSON.stringify({ [key]: [value], status: value })),
    );
    fc.assert(
      fc.property(answers, (answer) => {
        expect(dialect.readAnswer(Buffer.from(answer)).end).toBeDefined();
      }),
      { numRuns: 500 },
    );
  });
});
