import { z } from "zod";

/** What a process says of itself. */
export interface ProcessIdentity {
  readonly role: "gateway" | "worker";
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly startedAtMs: number;
}

const recordSchema = z.object({
  role: z.enum(["gateway", "worker"]),
  host: z.string(),
  pid: z.number(),
  version: z.string(),
  startedAtMs: z.number(),
  clockSkewMs: z.number().nullable(),
});

/** A process that runs, as the others see it. */
export type RelayProcess = z.infer<typeof recordSchema> & {
  /** Time of its latest pulse, by Redis' clock. */
  readonly seenAtMs: number;
};

export function renderRecord(identity: ProcessIdentity, clockSkewMs: number | undefined): string {
  const { role, host, pid, version, startedAtMs } = identity;
  const record = { role, host, pid, version, startedAtMs, clockSkewMs: clockSkewMs ?? null };
  return JSON.stringify(record satisfies z.infer<typeof recordSchema>);
}

/** Reads "beat seen_ms record", as scripts/pulse.lua writes it; undefined for one that can't be read. */
export function parseRecord(stored: string): RelayProcess | undefined {
  const [, seenAtMs = "", json = ""] = /^\d+ (\d+) (.*)$/s.exec(stored) ?? [];
  try {
    return { ...recordSchema.parse(JSON.parse(json)), seenAtMs: Number(seenAtMs) };
  } catch {
    // Another version's, say: the list goes on without it.
    return undefined;
  }
}
