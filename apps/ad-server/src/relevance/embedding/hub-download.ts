import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Logger } from "pino";

export type DownloadResult =
  | { readonly kind: "ok" }
  | { readonly kind: "absent" }
  | { readonly kind: "faulty"; readonly reason: string };

export interface DownloadOptions {
  readonly url: string;
  readonly file: string;
  readonly bytesMax: number;
  readonly log: Logger;
}

/** A file that takes longer is given up. */
const DOWNLOAD_TIMEOUT_MS = 15 * 60_000;
const PROGRESS_INTERVAL_MS = 5000;

/** Downloads one file, whole or not at all. */
export async function downloadFile(options: DownloadOptions): Promise<DownloadResult> {
  const unfinished = `${options.file}.${process.pid}.part`;
  try {
    const response = await fetch(options.url, { signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS) });
    if (response.status === 404) {
      await response.body?.cancel();
      return { kind: "absent" };
    }
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      return { kind: "faulty", reason: `the answer was ${response.status}` };
    }
    await mkdir(dirname(options.file), { recursive: true });
    await pipeline(
      Readable.fromWeb(response.body),
      (chunks) => watchBytes(chunks, expectedBytes(response), options),
      createWriteStream(unfinished),
    );
    await rename(unfinished, options.file);
    return { kind: "ok" };
  } catch (error) {
    return { kind: "faulty", reason: reasonOf(error) };
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** Passes bytes on, tells how many, and ends with an error if there are too many or too few. */
async function* watchBytes(
  chunks: AsyncIterable<Uint8Array>,
  expected: number | undefined,
  { url, bytesMax, log }: DownloadOptions,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  let toldMs = performance.now();
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      throw new RangeError(`it has more than ${bytesMax} bytes`);
    }
    if (performance.now() - toldMs >= PROGRESS_INTERVAL_MS) {
      toldMs = performance.now();
      log.info({ event: "model_downloading", url, bytes, of: expected });
    }
    yield chunk;
  }
  if (expected !== undefined && bytes !== expected) {
    throw new RangeError(`it ended after ${bytes} of ${expected} bytes`);
  }
  log.info({ event: "model_file_downloaded", url, bytes });
}

/** The length that the answer promises; one of a packed body is that of the packed bytes and says nothing. */
function expectedBytes({ headers }: Response): number | undefined {
  const length = headers.get("Content-Length");
  return length === null || headers.has("Content-Encoding") ? undefined : Number(length);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  const { cause } = error;
  return cause instanceof Error ? `${error.message} (${cause.message})` : error.message;
}
