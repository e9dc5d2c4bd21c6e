/** Callers that hang up: what their calls hold, and what goes on without them. */
import { once } from "node:events";
import { request } from "node:http";
import { gzipSync } from "node:zlib";
import { ACKNOWLEDGE_PATH, INJECTION_PATH } from "@adrelay/contract";
import { openDirectory } from "@adrelay/provider";
import { Admission, SessionHashes, type StartInjection } from "@adrelay/relay-kit";
import { createRegistry, makeReadBody, NO_TRACING, startHttpServer } from "@adrelay/service-kit";
import { eventually, unknownId } from "@adrelay/testkit";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import type { AcknowledgeInput } from "../src/acknowledge/acknowledge.ts";
import { makeAcknowledgeHandler } from "../src/acknowledge/handler.ts";
import { createGatewayMetrics } from "../src/gateway-metrics.ts";
import { makeStartInjectionHandler } from "../src/injection-handler.ts";
import { createPublicApp, type PublicAppDeps } from "../src/public-app.ts";

const log = pino({ level: "silent" });
const MEBIBYTE = 1024 * 1024;
const readBody = makeReadBody(64 * MEBIBYTE);

function openPublishers() {
  const tlsFiles = { ca: undefined, clientCert: undefined, clientKey: undefined };
  const opened = openDirectory({
    file: undefined,
    apiKeys: ["key-of-the-caller"],
    provider: { url: "http://127.0.0.1:9", apiKey: "key", apiKeyHeader: "X-Key", tlsFiles },
    env: () => undefined,
  });
  return opened.kind === "ok" ? opened.directory : expect.fail("there are no publishers");
}

const OFF = Number.POSITIVE_INFINITY;
const NO_BYTE_LIMIT = { bytes: OFF };
const NO_QUOTAS = {
  requestsPerSecond: OFF,
  burst: OFF,
  bytesPerSecond: OFF,
  bytesBurst: OFF,
  injectionsInFlight: OFF,
  bytesInFlight: NO_BYTE_LIMIT,
  queuedBytes: NO_BYTE_LIMIT,
  deadBytes: NO_BYTE_LIMIT,
  unknownBytes: NO_BYTE_LIMIT,
};

const unused = () => expect.fail("nobody should call this");

/** A listener of callers. What a test doesn't give isn't used. */
async function setup(given: Partial<Pick<PublicAppDeps, "readBody" | "startInjection" | "acknowledge">>) {
  const publishers = openPublishers();
  const admission = new Admission({
    quotas: NO_QUOTAS,
    callsMax: 10,
    bytesMax: 1024 * MEBIBYTE,
    onRefused: unused,
  });
  const app = createPublicApp({
    authenticate: () => publishers.current[0],
    keyHeaders: ["X-Key"],
    readBody,
    readBytesMax: Number.POSITIVE_INFINITY,
    admission,
    countOverload: unused,
    refuseInjection: unused,
    startInjection: unused,
    acknowledge: unused,
    lookUp: unused,
    metrics: createGatewayMetrics(createRegistry(), { publishers, publishersMax: 1 }),
    tracing: NO_TRACING,
    log,
    ...given,
  });
  const server = await startHttpServer(app, { name: "the gateway", host: "127.0.0.1", port: 0, log });
  onTestFinished(() => server.stop(AbortSignal.abort()));
  /** Sends a whole body. */
  const post = async (path: string, body: string | Buffer, headers: Record<string, string> = {}) => {
    const json = { "Content-Type": "application/json", ...headers };
    const call = request({ host: "127.0.0.1", port: server.port, method: "POST", path, headers: json });
    call.on("error", () => {});
    await new Promise<void>((resolve) => call.end(body, resolve));
    return { hangUp: () => void call.destroy() };
  };
  return { admission, post };
}

test("a body that is decompressed while its caller hangs up is let go of", async () => {
  const reading = Promise.withResolvers<unknown>();
  const { admission, post } = await setup({
    readBody: (...given) => {
      const result = readBody(...given);
      reading.resolve(result);
      return result;
    },
  });
  const call = await post(INJECTION_PATH, gzipSync(`{${"x".repeat(40 * MEBIBYTE)}`), {
    "Content-Encoding": "gzip",
  });
  call.hangUp();
  await Promise.allSettled([reading.promise]);
  await eventually(() => expect([admission.calls.used, admission.bytes.used]).toEqual([0, 0]));
});

test("a compressed acknowledgment that has come whole is accepted, also if its caller hangs up", async () => {
  const accepted = Promise.withResolvers<AcknowledgeInput>();
  const closed = Promise.withResolvers<void>();
  const acknowledge = makeAcknowledgeHandler({
    acknowledge: (input) => {
      input.onLetGo();
      accepted.resolve(input);
      return Promise.resolve({ kind: "error", code: "queue_unavailable" });
    },
    defaultWaitMs: 0,
  });
  const { admission, post } = await setup({
    acknowledge,
    readBody: async (incoming, response, hold) => {
      response.once("close", closed.resolve);
      const result = await readBody(incoming, response, hold);
      // As if the decompressor were slower.
      await closed.promise;
      return result;
    },
  });
  const body = gzipSync(JSON.stringify({ ad_response_id: unknownId(), llm_response: "text" }));
  const call = await post(ACKNOWLEDGE_PATH, body, { "Content-Encoding": "gzip" });
  call.hangUp();
  expect((await accepted.promise).caller.isGone).toBe(true);
  await eventually(() => expect([admission.calls.used, admission.bytes.used]).toEqual([0, 0]));
});

test("an acknowledgment that waits for its outcome is told when its caller hangs up", async () => {
  const accepted = Promise.withResolvers<AcknowledgeInput>();
  const acknowledge = makeAcknowledgeHandler({
    acknowledge: (input) => {
      accepted.resolve(input);
      return new Promise((resolve) => {
        input.caller.onGone = () => resolve({ kind: "error", code: "queue_unavailable" });
      });
    },
    defaultWaitMs: 30_000,
  });
  const ended = Promise.withResolvers<void>();
  const { post } = await setup({
    acknowledge: (call) => acknowledge(call).finally(ended.resolve),
  });
  const body = JSON.stringify({ ad_response_id: unknownId(), llm_response: "text" });
  const call = await post(ACKNOWLEDGE_PATH, body);
  const { caller } = await accepted.promise;
  expect(caller.isGone).toBe(false);
  call.hangUp();
  await ended.promise;
  expect(caller.isGone).toBe(true);
});

test("an injection whose caller hung up while its body was read knows that", async () => {
  const started = Promise.withResolvers<Parameters<StartInjection>[0]>();
  const { post } = await setup({
    readBody: async (incoming, response, hold) => {
      const closed = once(response, "close");
      const result = await readBody(incoming, response, hold);
      await closed;
      return result;
    },
    startInjection: makeStartInjectionHandler({
      startInjection: async (input) => {
        started.resolve(input);
        return { kind: "caller_gone" };
      },
      defaultTimeoutMs: 1000,
      fallbackAs: "no_fill",
      sessionHashes: new SessionHashes([]),
    }),
  });
  const call = await post(INJECTION_PATH, JSON.stringify({ prompt: "text" }));
  call.hangUp();
  expect((await started.promise).caller.isGone).toBe(true);
});
