/**
 * The content of an answer from its bytes. Edges in front of providers compress answers although nobody asked for it, and some
 * servers write JSON with a byte order mark or in UTF-16. Callers and the rest of the relay get plain UTF-8.
 *
 * An answer that can't be decoded is malformed: it has no body and no bytes.
 */
import { promisify, TextDecoder } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw, zstdDecompress } from "node:zlib";
import { isJsonWithinLimits } from "@adrelay/contract";

/** An answer as it was received. */
export interface EncodedAnswer {
  readonly bytes: Buffer;
  /** The Content-Encoding header, unchanged. */
  readonly contentEncoding: string | undefined;
  /** The Content-Type header, unchanged. */
  readonly contentType: string | undefined;
  /** A content of more bytes is not decoded. */
  readonly bytesMax: number;
}

/** The content of an answer, in UTF-8 without a byte order mark. */
export interface DecodedAnswer {
  /** The content parsed as JSON: null if it is declared as JSON and empty, undefined if it isn't JSON. */
  readonly body: unknown;
  readonly bytes: Buffer;
  readonly contentType: string | undefined;
}

/** The content, or why there is none. */
export type DecodeResult = DecodedAnswer | "too_large";

/** Whether the bytes are the content itself, so that `readContent` is enough. Nearly all answers are so. */
export function isPlain({ contentEncoding }: EncodedAnswer): boolean {
  return contentEncoding === undefined || codingsOf(contentEncoding).length === 0;
}

/** Undoes the content codings of an answer, and reads it. Never rejects. */
export async function decodeAnswer(answer: EncodedAnswer): Promise<DecodeResult> {
  const { bytes, contentEncoding = "", contentType, bytesMax } = answer;
  try {
    return readContent(await undoCodings(bytes, codingsOf(contentEncoding), bytesMax), contentType);
  } catch (error) {
    if (error instanceof RangeError && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE") {
      return "too_large";
    }
    // Some edges decompress an answer and leave the header.
    const content = readContent(bytes, contentType);
    return content.body === undefined ? { ...content, bytes: NO_BYTES } : content;
  }
}

const NO_BYTES = Buffer.alloc(0);

type Decompress = (bytes: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>;

const [undoGzip, undoZlib, undoDeflate] = [promisify(gunzip), promisify(inflate), promisify(inflateRaw)];
const undoBrotli: Decompress = promisify(brotliDecompress);
const undoZstd: Decompress = promisify(zstdDecompress);

/** The registered codings (RFC 9110, section 8.4.1) that servers use. */
const DECOMPRESS: Readonly<Record<string, Decompress>> = {
  gzip: undoGzip,
  "x-gzip": undoGzip,
  // By the RFC it has zlib's header, but many servers leave it out. The header's first byte ends in 8.
  deflate: (bytes, options) => ((bytes[0] ?? 0) % 16 === 8 ? undoZlib : undoDeflate)(bytes, options),
  br: undoBrotli,
  zstd: undoZstd,
};

/** More codings than this are no answer of a sane server. */
const CODINGS_MAX = 5;

/** The codings in the order in which they were applied, in lower case, without `identity`. */
function codingsOf(contentEncoding: string): string[] {
  const names = contentEncoding.split(",").map((name) => name.trim().toLowerCase());
  return names.filter((name) => name !== "" && name !== "identity");
}

/** An answer's coding is unknown. */
class UnknownCodingError extends Error {
  override readonly name = "UnknownCodingError";
}

async function undoCodings(bytes: Buffer, codings: readonly string[], bytesMax: number): Promise<Buffer> {
  if (codings.length > CODINGS_MAX) {
    throw new UnknownCodingError();
  }
  let decoded = bytes;
  for (const coding of codings.toReversed()) {
    const decompress = Object.hasOwn(DECOMPRESS, coding) ? DECOMPRESS[coding] : undefined;
    if (decompress === undefined) {
      throw new UnknownCodingError();
    }
    decoded = await decompress(decoded, { maxOutputLength: bytesMax });
  }
  return decoded;
}

const JSON_TYPE = /^application\/([\w.+-]+\+)?json\b/i;
const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]+)"?/i;

/** Reads the content as text: by its byte order mark, else by the charset of its type, else as UTF-8. */
export function readContent(bytes: Buffer, contentType: string | undefined): DecodedAnswer {
  if (bytes.length === 0) {
    return { body: JSON_TYPE.test(contentType ?? "") ? null : undefined, bytes, contentType };
  }
  const declared = CHARSET.exec(contentType ?? "")?.[1];
  const charset = charsetOfMark(bytes) ?? declared;
  if (charset === undefined || /^utf-?8$/i.test(charset)) {
    const content = hasUtf8Mark(bytes) ? bytes.subarray(UTF8_MARK.length) : bytes;
    return { body: parseJson(content), bytes: content, contentType };
  }
  const decoder = decoderOf(charset);
  const content = decoder === undefined ? bytes : Buffer.from(decoder.decode(bytes));
  return {
    body: parseJson(content),
    bytes: content,
    contentType: contentType?.replace(CHARSET, "; charset=utf-8"),
  };
}

const UTF8_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

function hasUtf8Mark(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes.subarray(0, UTF8_MARK.length).equals(UTF8_MARK);
}

function charsetOfMark(bytes: Buffer): string | undefined {
  const mark = bytes.length < 2 ? 0 : bytes.readUInt16BE(0);
  if (mark === 0xfeff) {
    return "utf-16be";
  }
  return mark === 0xfffe ? "utf-16le" : hasUtf8Mark(bytes) ? "utf-8" : undefined;
}

/** undefined if the charset is unknown. */
function decoderOf(charset: string): TextDecoder | undefined {
  try {
    return new TextDecoder(charset);
  } catch {
    return undefined;
  }
}

function parseJson(content: Buffer): unknown {
  try {
    return isJsonWithinLimits(content) ? JSON.parse(content.toString("utf8")) : undefined;
  } catch {
    return undefined;
  }
}
