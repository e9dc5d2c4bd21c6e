/**
 * Guards the promise that Redis is reached over TLS, with an authority and a client certificate of the operator's own:
 * on a Redis that speaks TLS, if the one of the tests does, and on one behind a proxy that ends TLS.
 */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { createServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { freeLanePort, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  eventually,
  relayCaller,
  type ScriptedProvider,
  startApp,
  startRelayStack,
  startScriptedProvider,
} from "@adrelay/testkit";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";

const pathOf = (name: string) =>
  fileURLToPath(new URL(`../packages/provider/testdata/tls/${name}.pem`, import.meta.url));
/** The server's certificate is for provider.test and 127.0.0.1. Both sides' are signed by this authority. */
const AUTHORITY = { REDIS_TLS_CA_FILE: pathOf("ca") };
const CLIENT = { REDIS_TLS_CERT_FILE: pathOf("relay"), REDIS_TLS_KEY_FILE: pathOf("relay-key") };

interface TlsRedis {
  readonly port: number;
  close(): Promise<void>;
}

/** A Redis that speaks TLS itself, and wants a certificate of its clients. */
async function startOwnTls(): Promise<TlsRedis> {
  const port = await freeLanePort();
  const files = ["cert", "provider", "key", "provider-key", "ca-cert", "ca"];
  const options = files.flatMap((word, at) =>
    at % 2 === 0 ? [`--tls-${word}-file`, pathOf(files[at + 1] ?? "")] : [],
  );
  const server: TestRedis = await startTestRedis(["--tls-port", String(port), ...options]);
  return { port, close: () => server.dispose() };
}

/** A Redis behind a proxy that ends TLS, and wants a certificate of its clients. */
async function startBehindProxy(): Promise<TlsRedis> {
  const redis = await startTestRedis();
  const read = (name: string) => readFileSync(pathOf(name));
  const files = { cert: read("provider"), key: read("provider-key"), ca: read("ca") };
  const proxy = createServer({ ...files, requestCert: true, rejectUnauthorized: true }, (client) => {
    const server = connect(redis.port, "127.0.0.1");
    client.pipe(server).pipe(client);
    for (const socket of [client, server]) {
      socket.on("error", () => client.destroy(server.destroy().errored ?? undefined));
      socket.on("close", () => [client, server].map((each) => each.destroy()));
    }
  });
  const port = await freeLanePort();
  await new Promise<void>((resolve) => proxy.listen(port, "127.0.0.1", resolve));
  return {
    port,
    close: async () => {
      proxy.close();
      await redis.dispose();
    },
  };
}

const ways = await Promise.all(
  [
    { title: "a Redis that speaks TLS", start: startOwnTls },
    { title: "a Redis behind a proxy", start: startBehindProxy },
  ].map(async ({ title, start }) => ({ title, redis: await start().catch(() => undefined) })),
);

test.for(ways.filter(({ redis }) => redis === undefined))(
  "$title is not tested: the server of these tests has no TLS",
  (_way, { skip }) => skip(),
);

describe.each(ways.flatMap(({ title, redis }) => (redis === undefined ? [] : { title, redis })))(
  "$title",
  ({ redis }) => {
    let provider: ScriptedProvider;
    const url = `rediss://127.0.0.1:${redis.port}`;

    beforeAll(async () => {
      provider = await startScriptedProvider();
      provider.onAcknowledge(() => acknowledged());
    });
    afterAll(async () => {
      await provider.close();
      await redis.close();
    });

    const worker = async (env: Record<string, string>) => {
      const app = await startApp("worker", {
        REDIS_URL: url,
        PROVIDER_API_KEY: "k",
        WORKER_OPS_PORT: "0",
        ...env,
      });
      onTestFinished(async () => void (await app.stop()));
      return app;
    };
    const awayLine = (words: RegExp) =>
      expect.objectContaining({
        event: "redis_away",
        err: expect.objectContaining({ message: expect.stringMatching(words) }),
      });

    test.each([
      ["its address", {}],
      ["its name", { REDIS_TLS_SERVERNAME: "provider.test" }],
    ])(
      "with an own authority and a client certificate, %s being checked, the relay works",
      async (_name, more) => {
        const env = { ...AUTHORITY, ...CLIENT, ...more };
        const stack = await startRelayStack({ redis: { url }, providerUrl: provider.url, env });
        onTestFinished(() => stack.stop());
        const caller = relayCaller(stack.gatewayUrl);
        const id = crypto.randomUUID();
        expect((await caller.acknowledge(id, "text")).status).toBeLessThan(300);
        await eventually(async () =>
          expect((await caller.lookUp(id)).body).toMatchObject({ state: "delivered" }),
        );
      },
    );

    test("without the authority, or under another name, the connection is refused by name", async () => {
      expect((await worker(CLIENT)).logs).toContainEqual(awayLine(/certificate/));
      const other = { ...AUTHORITY, ...CLIENT, REDIS_TLS_SERVERNAME: "other.test" };
      expect((await worker(other)).logs).toContainEqual(awayLine(/other\.test/));
    });

    test("without a client certificate the server refuses the connection", async () => {
      expect((await worker(AUTHORITY)).logs).toContainEqual(
        awayLine(/certificate|alert|closed|ECONNRESET|EPIPE/),
      );
    });
  },
);
