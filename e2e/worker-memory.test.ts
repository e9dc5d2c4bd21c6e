/** Guards against a worker that is killed for its memory: large bodies, and providers that hang, are slow, or lie. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { adAckIdSchema, adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import { containerMemorySettings, freeLanePort, startTestRedis } from "@adrelay/dev-servers";
import { openStore } from "@adrelay/store";
import {
  acknowledged,
  type Behaviour,
  eventually,
  fetchMetrics,
  startApp,
  startScriptedProvider,
  unknownId,
  writePublishersFile,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";

const BODY = "x".repeat(1_000_000);
const BODIES_EACH = 25;
const PROMISED_MS = 1000;
const ROUNDS = 15;
const RSS_MAX_MB = 256;

const GARBAGE: Behaviour = { kind: "raw", status: 200, bytes: "x".repeat(1_000_000) };
const TROUBLES: readonly Behaviour[] = [
  { kind: "hang" },
  { kind: "late", delayMs: 3000, answer: acknowledged() },
  GARBAGE,
];

async function setup() {
  // Without its file: a disk that takes 100 MB slowly would be what is measured.
  const server = await startTestRedis(["--appendonly", "no"]);
  onTestFinished(() => server.dispose());
  const redis = new Redis(server.url);
  onTestFinished(() => redis.disconnect());
  const store = openStore({ redis, recordRetentionMs: 3_600_000 });
  onTestFinished(() => store.stop());
  const troubled = await Promise.all(
    TROUBLES.map(async (trouble, at) => {
      const provider = await startScriptedProvider();
      onTestFinished(() => provider.close());
      provider.onAcknowledge(() => trouble);
      return { id: `troubled-${at}`, provider };
    }),
  );
  const calm = await startScriptedProvider();
  onTestFinished(() => calm.close());
  const file = writePublishersFile(
    [...troubled, { id: "calm", provider: calm }].map(({ id, provider }) => {
      return { id, providerUrl: provider.url, keyEnv: "PROVIDER_KEY" };
    }),
  );
  onTestFinished(() => file.remove());
  const opsPort = await freeLanePort();
  const worker = await startApp("worker", {
    ...containerMemorySettings(RSS_MAX_MB),
    REDIS_URL: server.url,
    REDIS_DURABILITY: "warn",
    PUBLISHERS_FILE: file.path,
    PROVIDER_KEY: "key",
    WORKER_OPS_PORT: String(opsPort),
    WORKER_CONCURRENCY: "50",
    SHUTDOWN_TIMEOUT_MS: "1000",
  });
  onTestFinished(async () => void (await worker.stop()));
  const accept = async (publisher: string, text: string) => {
    const adResponseId = adResponseIdSchema.parse(unknownId());
    const adAckId = adAckIdSchema.parse(randomUUID());
    const body = JSON.stringify({ ad_response_id: adResponseId, llm_response: text });
    const job = {
      v: 1,
      adResponseId,
      adAckId,
      publisher: publisherIdSchema.parse(publisher),
      body,
      requestId: "r",
    } as const;
    await store.acknowledgments.accept({ job, textHash: "hash" });
    return adResponseId;
  };
  return { opsUrl: `http://127.0.0.1:${opsPort}`, pid: worker.pid, troubled, calm, accept };
}

function residentMaxMb(pid: number): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

test("with large bodies for troubled providers a worker stays small and ready, and delivers for others", async () => {
  const { opsUrl, pid, troubled, calm, accept } = await setup();
  for (let at = 0; at < BODIES_EACH; at += 1) {
    await Promise.all(troubled.map(({ id }) => accept(id, BODY)));
  }
  let heldMax = 0;
  const durationsMs: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const startedAtMs = performance.now();
    const id = await accept("calm", "a text");
    const ready = await fetch(`${opsUrl}/readyz`);
    expect(ready.status, await ready.text()).toBe(200);
    await eventually(() => expect(calm.acknowledgmentsOf(id)).toHaveLength(1));
    durationsMs.push(performance.now() - startedAtMs);
    const metrics = await fetchMetrics(opsUrl);
    const held = metrics.get("adrelay_delivery_payload_bytes") ?? 0;
    heldMax = Math.max(heldMax, held);
    expect(held).toBeLessThanOrEqual(metrics.get("adrelay_delivery_payload_max_bytes") ?? 0);
  }
  // This process also receives the large bodies, which may delay a few rounds.
  expect(durationsMs.toSorted((one, other) => one - other).at(-4)).toBeLessThan(PROMISED_MS);
  expect(heldMax).toBeGreaterThan(0);
  for (const { provider } of troubled) {
    await eventually(() => expect(provider.posts[0]?.fields["llm_response"]).toBe(BODY));
  }
  expect(residentMaxMb(pid)).toBeLessThan(RSS_MAX_MB);
});

test("large bodies are all delivered, as many at a time as there is room for", async () => {
  const { opsUrl, pid, troubled, accept } = await setup();
  const [{ id: publisher, provider } = { id: "", provider: undefined }] = troubled;
  provider?.onAcknowledge(() => ({ kind: "late", delayMs: 200, answer: acknowledged() }));
  const ids = await Promise.all(Array.from({ length: BODIES_EACH }, () => accept(publisher, BODY)));
  await eventually(() => {
    for (const id of ids) {
      expect(provider?.acknowledgmentsOf(id)).toHaveLength(1);
    }
  });
  await eventually(async () =>
    expect((await fetchMetrics(opsUrl)).get("adrelay_delivery_payload_bytes")).toBe(0),
  );
  expect(residentMaxMb(pid)).toBeLessThan(RSS_MAX_MB);
});
