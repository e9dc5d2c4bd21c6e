/**
 * Guards the promise that Redis is reached over TLS, with an authority and a client certificate of the operator's own:
 * on a Redis that speaks TLS, if the one of the tests does, and on one behind a proxy that ends TLS.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
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
import { afterAll, beforeAll, describe, expect, type TestContext, test } from "vitest";

const pathOf = (name: string) =>
  fileURLToPath(new URL(`../packages/provider/testdata/tls/${name}.pem`, import.meta.url));
/** The server's certificate is for provider.test and 127.0.0.1. Both sides' are signed by this authority. */
const AUTHORITY = { REDIS_TLS_CA_FILE: pathOf("ca") };
const CLIENT = { REDIS_TLS_CERT_FILE: pathOf("relay"), REDIS_TLS_KEY_FILE: pathOf("relay-key") };

const START = fileURLToPath(new URL("../scripts/start.ts", import.meta.url));

/** What a program of ours writes to standard error until it ends. */
async function outputOf(args: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  return text(child.stderr);
}

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

// The tests mostly wait: each process that starts waits some seconds for Redis.
describe.concurrent.each(ways.flatMap(({ title, redis }) => (redis === undefined ? [] : { title, redis })))(
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

    const worker = async ({ onTestFinished }: TestContext, env: Record<string, string>) => {
      const app = await startApp("worker", {
        REDIS_URL: url,
        PROVIDER_API_KEY: "k",
        WORKER_OPS_PORT: "0",
        ...env,
      });
      onTestFinished(async () => void (await app.stop()));
      return app;
    };
    /** A process that starts logs both lines. */
    const whyAway = async (context: TestContext, env: Record<string, string>) => {
      const { logs } = await worker(context, env);
      const lines = () =>
        logs.filter(({ event }) => event === "redis_away" || event === "redis_away_at_start");
      await eventually(() =>
        expect(lines().map(({ event }) => event)).toEqual(
          expect.arrayContaining(["redis_away", "redis_away_at_start"]),
        ),
      );
      return lines()
        .map(({ why }) => String(why))
        .join("\n");
    };

    test.for([
      ["its address", {}],
      ["its name", { REDIS_TLS_SERVERNAME: "provider.test" }],
    ] as const)(
      "with an own authority and a client certificate, %s being checked, the relay works",
      async ([_name, more], { onTestFinished }) => {
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

    const ALL = { ...AUTHORITY, ...CLIENT };
    const PLAIN = { REDIS_URL: `redis://127.0.0.1:${redis.port}` };
    const STRANGER = {
      REDIS_TLS_CERT_FILE: pathOf("self-signed"),
      REDIS_TLS_KEY_FILE: pathOf("self-signed-key"),
    };
    test.for([
      ["without the authority", CLIENT, "REDIS_TLS_CA_FILE"],
      ["under another name", { ...ALL, REDIS_TLS_SERVERNAME: "other.test" }, "REDIS_TLS_SERVERNAME"],
      ["without a client certificate", AUTHORITY, "REDIS_TLS_CERT_FILE"],
      ["with a stranger's certificate", { ...AUTHORITY, ...STRANGER }, "REDIS_TLS_CERT_FILE"],
      ["without TLS", PLAIN, "rediss://"],
    ] as const)("%s, each line says what to set", async ([_name, env, setting], context) => {
      const lines = (await whyAway(context, env)).split("\n");
      expect(lines).toEqual(lines.map(() => expect.stringContaining(setting)));
    });

    test.for([
      ["finds it with the authority", ALL, /^(?!.*REDIS)/s],
      ["says what to set without it", CLIENT, /REDIS_URL: .*REDIS_TLS_CA_FILE/],
    ] as const)("npm start %s", async ([_name, env, words], { onTestFinished }) => {
      const home = mkdtempSync(join(tmpdir(), "adrelay-redis-tls-"));
      onTestFinished(() => rmSync(home, { recursive: true }));
      // The occupied port ends the start, once all that is checked before it has been reported.
      const own = { ADRELAY_HOME: home, REDIS_URL: url, GATEWAY_PORT: String(redis.port) };
      const output = await outputOf([START, "--no-demo"], { ...env, ...own });
      expect(output).toContain(`port ${redis.port} for the gateway is in use`);
      expect(output).toMatch(words);
    });

    test("the doctor says it, too", async ({ onTestFinished }) => {
      const gateway = await startApp("gateway", {
        REDIS_URL: url,
        ...CLIENT,
        API_KEYS: "key-for-this-test",
        PROVIDER_API_KEY: "k",
        ADMIN_TOKEN: "token-for-this-test",
        GATEWAY_PORT: "0",
        GATEWAY_OPS_PORT: "0",
      });
      onTestFinished(async () => void (await gateway.stop()));
      const doctor = await fetch(
        `http://127.0.0.1:${String(gateway.listening["ops_port"])}/admin/v1/doctor`,
        { headers: { Authorization: "Bearer token-for-this-test" } },
      );
      expect(await doctor.json()).toMatchObject({
        checks: expect.arrayContaining([
          expect.objectContaining({
            name: "redis",
            status: "fail",
            detail: expect.stringContaining("REDIS_TLS_CA_FILE"),
          }),
        ]),
      });
    });
  },
);
