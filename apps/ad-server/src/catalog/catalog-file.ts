/** Reads the text of a catalogue file and its YAML, whatever the file turns out to be. Nothing here throws. */
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { getSystemErrorMap } from "node:util";
import { CORE_SCHEMA, load, YAMLException } from "js-yaml";
import { describeYamlError } from "./plain-faults.ts";

export type CatalogText =
  | { readonly kind: "read"; readonly text: string }
  | {
      readonly kind: "unreadable";
      /** Continues a sentence that begins with the file's name. */
      readonly why: string;
      /** Whether the file may become readable without a change that its state shows, as after an error of the disk. */
      readonly mayPass: boolean;
    };

/** Far more than a catalogue needs. A file of this size is still read within seconds. */
const FILE_BYTES_MAX = 64 * 1024 * 1024;

/** Reads a regular file of UTF-8. */
export function readCatalogText(file: string): CatalogText {
  try {
    // Without O_NONBLOCK, opening a pipe would wait for its writer, and nothing could end the wait.
    const descriptor = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const why = whyNoText(fstatSync(descriptor));
      return why === undefined
        ? decode(readFileSync(descriptor))
        : { kind: "unreadable", why, mayPass: false };
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    return describeError(error);
  }
}

function whyNoText(stats: Stats): string | undefined {
  if (stats.isDirectory()) {
    return "is a folder, not a file";
  }
  if (!stats.isFile()) {
    return "is no regular file";
  }
  return stats.size > FILE_BYTES_MAX ? "is larger than 64 MiB" : undefined;
}

function decode(bytes: Buffer): CatalogText {
  const unreadable = (why: string) => ({ kind: "unreadable", why, mayPass: false }) as const;
  if (/^(?:\xff\xfe|\xfe\xff)/.test(bytes.toString("latin1", 0, 2))) {
    return unreadable("is in UTF-16; save it in UTF-8");
  }
  if (bytes.includes(0)) {
    return unreadable("has a NUL byte, so it is no text in UTF-8");
  }
  try {
    // A byte order mark is left out.
    return { kind: "read", text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return unreadable("isn't in UTF-8");
  }
}

/** Errors that last until somebody changes the file or a folder above it. */
const LASTING_ERRORS: ReadonlySet<string> = new Set([
  "ENOENT",
  "ENOTDIR",
  "ELOOP",
  "ENAMETOOLONG",
  "EACCES",
  "EPERM",
  "ENXIO",
]);

function describeError(error: unknown): CatalogText {
  const { code, errno } = Object(error);
  const known = typeof errno === "number" ? getSystemErrorMap().get(errno) : undefined;
  const [name, text] = known ?? [String(code), "unexpected error"];
  return { kind: "unreadable", why: `can't be read: ${text} (${name})`, mayPass: !LASTING_ERRORS.has(name) };
}

export type CatalogYaml =
  | { readonly kind: "parsed"; readonly value: unknown }
  | { readonly kind: "faulty"; readonly line: number; readonly column: number; readonly message: string };

/** Values of a catalogue, each alias written out. It is enough for about 80,000 ads. */
const VALUES_MAX = 2_000_000;

/** Parses the YAML of a catalogue. */
export function parseCatalogYaml(text: string): CatalogYaml {
  try {
    const value: unknown = load(text, { schema: CORE_SCHEMA });
    return countValues(value) <= VALUES_MAX
      ? { kind: "parsed", value }
      : {
          kind: "faulty",
          line: 1,
          column: 1,
          message: "has more than 2,000,000 values, aliases written out",
        };
  } catch (error) {
    const mark = error instanceof YAMLException ? error.mark : undefined;
    const message = error instanceof YAMLException ? describeYamlError(error.reason) : "isn't YAML";
    return { kind: "faulty", line: (mark?.line ?? 0) + 1, column: (mark?.column ?? 0) + 1, message };
  }
}

/**
 * How many values there would be if each alias was a copy. A few lines of aliases can stand for billions, and checking
 * them one by one would never end. A value that contains itself counts as infinite. The parser limits the depth.
 */
function countValues(value: unknown, counted = new Map<object, number>()): number {
  if (typeof value !== "object" || value === null) {
    return 1;
  }
  const known = counted.get(value);
  if (known !== undefined) {
    return known;
  }
  counted.set(value, Number.POSITIVE_INFINITY);
  let count = 1;
  for (const member of Object.values(value)) {
    count += countValues(member, counted);
  }
  counted.set(value, count);
  return count;
}
