/** What a process says about itself in the hash of processes. */
import { z } from "zod";

/** What a process says about itself. */
export interface ProcessIdentity {
  readonly role: "gateway" | "worker" | "proxy";
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly startedAtMs: number;
}

/** Which publishers' file is in force in a process. */
export interface PublishersFileNote {
  /** undefined without a file. */
  readonly digest: string | undefined;
  /** False while the process refuses the file that is there, and an older one is in force. */
  readonly isValid: boolean;
}

const recordSchema = z.object({
  role: z.enum(["gateway", "worker", "proxy"]),
  host: z.string(),
  pid: z.number(),
  version: z.string(),
  startedAtMs: z.number(),
  /** How far its clock is ahead of Redis'; null until its second heartbeat. */
  clockSkewMs: z.number().nullable(),
  /** Absent in records of older versions. */
  publishersFile: z.object({ digest: z.string().nullable(), isValid: z.boolean() }).optional(),
});

/** A process with its last heartbeat. */
type SeenProcess = z.infer<typeof recordSchema> & {
  /** Time of its last heartbeat, by Redis' clock. */
  readonly seenAtMs: number;
};

/** A running process, as the other processes see it. */
export type RelayProcess = SeenProcess & {
  /** How long ago its last heartbeat was. */
  readonly silentMs: number;
};

/** A record as JSON. heartbeat.lua adds a member if Redis sees the process' lifeline. */
export function renderRecord(
  { role, host, pid, version, startedAtMs }: ProcessIdentity,
  clockSkewMs: number | undefined,
  file: PublishersFileNote | undefined,
): string {
  const publishersFile = file && { digest: file.digest ?? null, isValid: file.isValid };
  const record = {
    role,
    host,
    pid,
    version,
    startedAtMs,
    clockSkewMs: clockSkewMs ?? null,
    publishersFile,
  };
  return JSON.stringify(record satisfies z.infer<typeof recordSchema>);
}

/** Reads "beat seen_ms record", as heartbeat/heartbeat.lua writes it; undefined if it can't be read. */
export function parseRecord(stored: string): SeenProcess | undefined {
  const [, seenAtMs = "", json = ""] = /^\d+ (\d+) (.*)$/s.exec(stored) ?? [];
  try {
    return { ...recordSchema.parse(JSON.parse(json)), seenAtMs: Number(seenAtMs) };
  } catch {
    // It may be of another version. The list goes on without it.
    return undefined;
  }
}
