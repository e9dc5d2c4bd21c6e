/**
 * Quotas: how much of the relay one publisher may use. The settings have the defaults, and the publishers' file may name
 * others. `off` stands for no limit, and is an infinite number here.
 */
import { z } from "zod";

/** A number of bytes, or a share of some memory that is known only at run time. */
export type ByteLimit = { readonly bytes: number } | { readonly share: number };

export interface Quotas {
  /** Requests of one operation a second, on average. */
  readonly requestsPerSecond: number;
  /** Requests of one operation that may come at once after a pause. */
  readonly burst: number;
  /** Bytes of request bodies of one operation a second, on average. */
  readonly bytesPerSecond: number;
  /** Such bytes that may come at once after a pause. The last body of them may be longer. */
  readonly bytesBurst: number;
  readonly injectionsInFlight: number;
  /** Bytes of request bodies; a share of what the process may hold. */
  readonly bytesInFlight: ByteLimit;
  /** Memory of queued acknowledgments of known ids; a share of Redis' memory. */
  readonly queuedBytes: ByteLimit;
  /** Memory of dead letters of known ids; a share of Redis' memory. */
  readonly deadBytes: ByteLimit;
  /** Memory of queued acknowledgments and dead letters of unknown ids; a share of Redis' memory. */
  readonly unknownBytes: ByteLimit;
}

/** What becomes of acknowledgments of unknown ids. */
export const UNKNOWN_ACK = ["accept", "reject"] as const;
export type UnknownAck = (typeof UNKNOWN_ACK)[number];

const OFF = "off";
/** Units are those of Redis' maxmemory. */
const UNIT_BYTES: Readonly<Record<string, number>> = { "": 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 };

/** Parses `64MB`, `5%`, `off` or a number of bytes; undefined if the text is none of them. */
export function parseByteLimit(text: string): ByteLimit | undefined {
  if (text === OFF) {
    return { bytes: Number.POSITIVE_INFINITY };
  }
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?) ?(%|[KMG]B)?$/i.exec(text) ?? [];
  const value = Number(number);
  if (number === undefined || (unit === "%" && value > 100)) {
    return undefined;
  }
  return unit === "%"
    ? { share: value / 100 }
    : { bytes: Math.round(value * (UNIT_BYTES[unit.toUpperCase()] ?? 1)) };
}

/** The bytes of a limit. A share of an unknown memory is no limit. */
export function limitInBytes(limit: ByteLimit, memoryBytes: number | undefined): number {
  if ("bytes" in limit) {
    return limit.bytes;
  }
  return memoryBytes === undefined ? Number.POSITIVE_INFINITY : Math.floor(limit.share * memoryBytes);
}

/** A limit of bytes as a text: `64MB`, `5%`, `off`, or a number of bytes. */
export const bytesLimitSchema = z.string().transform((text, context) => {
  const limit = parseByteLimit(text);
  if (limit === undefined) {
    context.addIssue({
      code: "custom",
      message: "must be a size such as 64MB, a share such as 5%, a number of bytes, or off",
    });
    return z.NEVER;
  }
  return limit;
});

/** A limit of a count as a text: a whole number of at least 1, or `off`. */
export const countLimitSchema = z
  .string()
  .regex(/^[1-9]\d{0,8}$|^off$/, "must be a whole number of at least 1, or off")
  .transform((text) => (text === OFF ? Number.POSITIVE_INFINITY : Number(text)));

/** A number of bytes as a text: `64MB`, a number, or `off`. */
export const sizeLimitSchema = z.string().transform((text, context) => {
  const limit = parseByteLimit(text);
  if (limit === undefined || !("bytes" in limit) || limit.bytes < 1) {
    context.addIssue({ code: "custom", message: "must be a size such as 64MB, a number of bytes, or off" });
    return z.NEVER;
  }
  return limit.bytes;
});

/** YAML has numbers where a person wrote no unit. */
const asText = z.union([z.number(), z.string()]).transform(String);
const bytesMember = asText.pipe(bytesLimitSchema).optional();
const sizeMember = asText.pipe(sizeLimitSchema).optional();
const countMember = asText.pipe(countLimitSchema).optional();

/** `quotas` of a publisher in the publishers' file. What is left out has the default of the settings. */
export const quotasSchema = z
  .strictObject({
    requests_per_second: countMember,
    burst: countMember,
    bytes_per_second: sizeMember,
    bytes_burst: sizeMember,
    injections_in_flight: countMember,
    bytes_in_flight: bytesMember,
    queued_bytes: bytesMember,
    dead_bytes: bytesMember,
    unknown_bytes: bytesMember,
  })
  .transform(
    (given): OwnQuotas => ({
      requestsPerSecond: given.requests_per_second,
      burst: given.burst,
      bytesPerSecond: given.bytes_per_second,
      bytesBurst: given.bytes_burst,
      injectionsInFlight: given.injections_in_flight,
      bytesInFlight: given.bytes_in_flight,
      queuedBytes: given.queued_bytes,
      deadBytes: given.dead_bytes,
      unknownBytes: given.unknown_bytes,
    }),
  );

/** The quotas that a publisher's entry in the file names. */
export type OwnQuotas = { readonly [name in keyof Quotas]?: Quotas[name] | undefined };

/** A publisher's quotas: its own, and the defaults for the others. */
export function quotasOf({ quotas }: { readonly quotas?: OwnQuotas | undefined }, defaults: Quotas): Quotas {
  return {
    requestsPerSecond: quotas?.requestsPerSecond ?? defaults.requestsPerSecond,
    burst: quotas?.burst ?? defaults.burst,
    bytesPerSecond: quotas?.bytesPerSecond ?? defaults.bytesPerSecond,
    bytesBurst: quotas?.bytesBurst ?? defaults.bytesBurst,
    injectionsInFlight: quotas?.injectionsInFlight ?? defaults.injectionsInFlight,
    bytesInFlight: quotas?.bytesInFlight ?? defaults.bytesInFlight,
    queuedBytes: quotas?.queuedBytes ?? defaults.queuedBytes,
    deadBytes: quotas?.deadBytes ?? defaults.deadBytes,
    unknownBytes: quotas?.unknownBytes ?? defaults.unknownBytes,
  };
}
