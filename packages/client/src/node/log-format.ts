/** The files of a file outbox: their names and their lines. */
import { createHash } from "node:crypto";
import { readlinkSync } from "node:fs";
import { hostname } from "node:os";
import type { StoredAcknowledgment } from "../outbox.ts";

/** The process that owns a log. */
export interface LogOwner {
  /** Stands for a host, or for a container on it: where process ids mean the same. */
  readonly host: string;
  readonly pid: number;
  /** When the process started, on some runtimes its thread. Nothing is decided by it, but version 0.2.0 does. */
  readonly startedAtMs: number;
}

export function thisProcess(): LogOwner {
  const host = createHash("sha256").update(`${hostname()} ${pidNamespace()}`).digest("hex").slice(0, 12);
  return { host, pid: process.pid, startedAtMs: Math.round(performance.timeOrigin) };
}

/** On Linux, containers on one host have their own process ids. */
function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

const LOG_NAME = /^outbox-([0-9a-f]{12})-(\d+)-(\d+)-[0-9a-f-]{36}\.jsonl$/;

export function logName({ host, pid, startedAtMs }: LogOwner, unique: string): string {
  return `outbox-${host}-${pid}-${startedAtMs}-${unique}.jsonl`;
}

/** The owner of a file; undefined if it is no log. */
export function ownerOf(name: string): LogOwner | undefined {
  const [, host, pid, startedAtMs] = LOG_NAME.exec(name) ?? [];
  return host === undefined ? undefined : { host, pid: Number(pid), startedAtMs: Number(startedAtMs) };
}

export function lineOf(acknowledgment: StoredAcknowledgment): string {
  return JSON.stringify({ v: 1, add: acknowledgment });
}

export function lineOfRemoval(adResponseId: string): string {
  return JSON.stringify({ v: 1, remove: adResponseId });
}

/**
 * What a log still holds, in order. A line that can't be read is skipped: a crash or a full disk cut it short, and it was
 * never confirmed. The lines around it are whole, because each write begins with a line break. An open one never replaces one
 * with its text.
 */
export function readLog(text: string): StoredAcknowledgment[] {
  const held = new Map<string, StoredAcknowledgment>();
  for (const line of text.split("\n")) {
    const { v, add, remove } = parseObject(line);
    const acknowledgment = v === 1 ? parseAcknowledgment(add) : undefined;
    if (acknowledgment?.isOpen === true && held.has(acknowledgment.adResponseId)) {
      continue;
    }
    if (acknowledgment !== undefined) {
      held.set(acknowledgment.adResponseId, acknowledgment);
    } else if (v === 1 && typeof remove === "string") {
      held.delete(remove);
    }
  }
  return [...held.values()];
}

function parseObject(line: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(line));
  } catch {
    return {};
  }
}

function parseAcknowledgment(value: unknown): StoredAcknowledgment | undefined {
  const { adResponseId, text, storedAtMs, isOpen, traceHeaders } = Object(value);
  if (typeof adResponseId !== "string" || typeof text !== "string" || typeof storedAtMs !== "number") {
    return undefined;
  }
  const isRecord = typeof traceHeaders === "object" && traceHeaders !== null;
  return {
    adResponseId,
    text,
    storedAtMs,
    ...(isOpen === true ? { isOpen } : {}),
    ...(isRecord ? { traceHeaders } : {}),
  };
}
