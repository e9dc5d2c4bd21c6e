/** What a test waits for and reads: conditions, metrics, the whole content of a Redis. */
import { Redis } from "ioredis";

const PAUSE_MIN_MS = 20;
const PAUSE_MAX_MS = 200;
/** A pause is so much of the wait until then, so that a long wait costs few checks. */
const PAUSE_SHARE = 0.05;

/**
 * Repeats a check until it passes. After `timeoutMs` it throws the last failure. Tests wait only in this way. The
 * default time suits a busy machine: a test about a duration passes its own.
 */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 20_000): Promise<T> {
  const startedAtMs = performance.now();
  for (;;) {
    try {
      return await check();
    } catch (error) {
      const waitedMs = performance.now() - startedAtMs;
      if (waitedMs > timeoutMs) {
        throw error;
      }
      // The last check comes at the end of the time, not after it.
      const pauseMs = Math.min(PAUSE_SHARE * waitedMs, PAUSE_MAX_MS, timeoutMs - waitedMs);
      await pause(Math.max(PAUSE_MIN_MS, pauseMs));
    }
  }
}

/** Waits for a fixed time. Only for cases that give no signal to wait for. */
export function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

/** Samples by metric and labels, as `name{a="x",b="y"}`, with the labels sorted by name. */
export type Samples = ReadonlyMap<string, number>;

/** Reads Prometheus' text format. */
export function parseMetrics(text: string): Samples {
  const samples = new Map<string, number>();
  for (const line of text.split("\n")) {
    const match = /^([a-z_:]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match !== null) {
      const [, name = "", labels = "", value = ""] = match;
      const sorted = (labels.match(/\w+="[^"]*"/g) ?? []).sort().join(",");
      samples.set(sorted === "" ? name : `${name}{${sorted}}`, Number(value));
    }
  }
  return samples;
}

/** Fetches the metrics, those of the ledger included. If Redis is slow, a scrape lacks them. Such a scrape is repeated. */
export function fetchLedgerMetrics(opsUrl: string): Promise<Samples> {
  return eventually(async () => {
    const samples = await fetchMetrics(opsUrl);
    if (!samples.has("adrelay_books_imbalance")) {
      throw new TypeError(`${opsUrl} has no metrics of the ledger`);
    }
    return samples;
  });
}

/** Fetches the metrics of a process from its ops listener. */
export async function fetchMetrics(opsUrl: string): Promise<Samples> {
  const response = await fetch(`${opsUrl}/metrics`);
  if (!response.ok) {
    throw new TypeError(`${response.url} answered ${response.status}`);
  }
  return parseMetrics(await response.text());
}

/** The sum of a metric's samples that have all the given labels. */
export function sumOf(samples: Samples, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  let sum = 0;
  for (const [key, value] of samples) {
    const [metric = "", rest = ""] = key.split("{", 2);
    if (metric === name && wanted.every((label) => rest.includes(label))) {
      sum += value;
    }
  }
  return sum;
}

/** How to read the whole value of a key, by its type. */
const READERS: Readonly<Record<string, (client: Redis, key: string) => Promise<unknown>>> = {
  string: (client, key) => client.get(key),
  hash: (client, key) => client.hgetall(key),
  list: (client, key) => client.lrange(key, 0, -1),
  set: (client, key) => client.smembers(key),
  zset: (client, key) => client.zrange(key, 0, "-1"),
  stream: (client, key) => client.xrange(key, "-", "+"),
};

/** All keys with their whole values, as text. For tests that something must not be stored. */
export async function dumpRedis(url: string): Promise<string> {
  const client = new Redis(url);
  try {
    const keys = await client.keys("*");
    const values = await Promise.all(
      keys.map(async (key) => READERS[await client.type(key)]?.(client, key) ?? "unread"),
    );
    return keys.map((key, at) => `${key}=${JSON.stringify(values[at])}`).join("\n");
  } finally {
    client.disconnect();
  }
}
