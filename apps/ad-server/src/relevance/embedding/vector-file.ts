import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";

/** Vectors by the key of their text. */
export type KeyedVectors = ReadonlyMap<string, Float32Array>;

export type VectorFileResult =
  | { readonly kind: "ok"; readonly vectors: KeyedVectors }
  | { readonly kind: "absent" }
  | { readonly kind: "broken"; readonly reason: string };

const headerSchema = z.strictObject({
  dimensions: z.int().min(1),
  keys: z.array(z.string()),
  /** SHA-256 of all bytes behind the header's line, in hexadecimal. */
  sha256: z.string(),
});

const FLOAT_BYTES = 4;

/** The file: a line of JSON (see headerSchema), then the vectors in the order of the keys, 32-bit floats. */
export async function saveVectors(file: string, vectors: KeyedVectors, dimensions: number): Promise<void> {
  const rows = Buffer.concat(
    [...vectors.values()].map((row) => Buffer.from(row.buffer, row.byteOffset, row.byteLength)),
  );
  const header = { dimensions, keys: [...vectors.keys()], sha256: sha256Of(rows) };
  const unfinished = `${file}.${process.pid}.part`;
  await mkdir(dirname(file), { recursive: true });
  try {
    await writeFile(unfinished, Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), rows]));
    await rename(unfinished, file);
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** Reads what `saveVectors` wrote; a file that is not wholly that is broken. */
export function loadVectors(file: string, dimensions: number): VectorFileResult {
  try {
    const bytes = readFileSync(file);
    const headerEnd = bytes.indexOf("\n");
    const header = headerSchema.parse(JSON.parse(bytes.toString("utf8", 0, headerEnd)));
    const rows = bytes.subarray(headerEnd + 1);
    const isWhole =
      header.dimensions === dimensions &&
      rows.length === header.keys.length * dimensions * FLOAT_BYTES &&
      header.sha256 === sha256Of(rows);
    return isWhole
      ? { kind: "ok", vectors: vectorsOf(header.keys, new Uint8Array(rows).buffer, dimensions) }
      : { kind: "broken", reason: "its vectors aren't those of its header" };
  } catch (error) {
    const isAbsent = error instanceof Error && "code" in error && error.code === "ENOENT";
    return isAbsent ? { kind: "absent" } : { kind: "broken", reason: "it has no such header" };
  }
}

function vectorsOf(keys: readonly string[], rows: ArrayBuffer, dimensions: number): KeyedVectors {
  const rowBytes = dimensions * FLOAT_BYTES;
  return new Map(
    keys.map((key, row) => [key, new Float32Array(rows.slice(row * rowBytes, (row + 1) * rowBytes))]),
  );
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
