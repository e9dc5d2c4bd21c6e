/** The provider's client and certificates: its own authority, a client certificate, and Basic authentication. */
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import { adAckIdSchema } from "@adrelay/contract";
import { type ScriptedProvider, startScriptedProvider } from "@adrelay/testkit";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { ProviderClient } from "../src/index.ts";
import type { TlsFiles } from "../src/tls-files.ts";
import { certOf, filesOf, keyOf, serverPair, startTlsProvider, tlsOf } from "./tls-fixtures.ts";

let client: ProviderClient;

beforeEach(() => {
  client = new ProviderClient();
});
afterEach(() => client.stop());

const NO_FILES: TlsFiles = { ca: undefined, clientCert: undefined, clientKey: undefined };

function acknowledge(url: string, files: TlsFiles = NO_FILES) {
  return client.acknowledge({
    account: { url, apiKey: "k", apiKeyHeader: "X-Key", tls: tlsOf(files) },
    body: "{}",
    requestId: "r",
    adAckId: adAckIdSchema.parse("0b0f7a52-5c1c-8a0b-9a55-2f5a5f7b8f10"),
    timeoutMs: 5000,
  });
}

test("a provider whose certificate a private authority signed is trusted by its file", async () => {
  const url = `https://127.0.0.1:${await startTlsProvider(serverPair("provider"))}`;
  expect(await acknowledge(url, filesOf())).toMatchObject({ kind: "answered", status: 200 });
  expect(await acknowledge(url)).toMatchObject({ code: "certificate_invalid" });
});

test.each([
  ["self-signed", "127.0.0.1", "DEPTH_ZERO_SELF_SIGNED_CERT"],
  ["expired", "127.0.0.1", "CERT_HAS_EXPIRED"],
  ["provider", "localhost", "ERR_TLS_CERT_ALTNAME_INVALID"],
] as const)(
  "with the certificate %s at %s nothing is sent, and the cause says why",
  async (name, host, cause) => {
    let requests = 0;
    const port = await startTlsProvider(serverPair(name), () => {
      requests += 1;
    });
    const reply = await acknowledge(`https://${host}:${port}`, filesOf());
    expect(reply).toEqual({ kind: "failed", stage: "before_send", code: "certificate_invalid", cause });
    expect(requests).toBe(0);
  },
);

test("a provider that asks for a client certificate gets it", async () => {
  const names: unknown[] = [];
  const url = await startMutual((request) =>
    names.push(Object(request.socket).getPeerCertificate().subject.CN),
  );
  expect(await acknowledge(url, filesOf("relay"))).toMatchObject({ kind: "answered", status: 200 });
  expect(names).toEqual(["relay.test"]);
});

test("a provider that cuts the connection because of our certificate fails the call", async () => {
  const url = await startMutual();
  expect(await acknowledge(url, filesOf("self-signed"))).toMatchObject({
    kind: "failed",
    code: "connection_lost",
  });
});

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

// Node's own servers send no alert, others do.
test.skipIf(!hasOpenssl).each([
  ["-tls1_3", undefined, /CERTIFICATE_REQUIRED/],
  ["-tls1_3", "self-signed", /UNKNOWN_CA/],
  ["-tls1_2", "self-signed", /UNKNOWN_CA/],
] as const)(
  "a provider that refuses our certificate by an alert (%s, %s) is named as the fault",
  async (version, name, cause) => {
    const reply = await acknowledge(`https://127.0.0.1:${await startOpensslServer(version)}`, filesOf(name));
    expect(reply).toMatchObject({
      kind: "failed",
      code: "certificate_invalid",
      cause: expect.stringMatching(cause),
    });
  },
);

/** OpenSSL's own server, which asks for a client certificate, until the end of the test. */
async function startOpensslServer(version: string): Promise<number> {
  const pair = ["-cert", certOf("provider"), "-key", keyOf("provider"), "-CAfile", certOf("ca")];
  const verify = ["-Verify", "1", "-verify_return_error"];
  const server = spawn("openssl", ["s_server", "-accept", "127.0.0.1:0", version, ...pair, ...verify], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  onTestFinished(() => {
    server.kill();
  });
  for await (const line of createInterface(server.stdout)) {
    const [, port] = /^ACCEPT \S+:(\d+)$/.exec(line) ?? [];
    if (port !== undefined) {
      return Number(port);
    }
  }
  return expect.unreachable();
}

function startMutual(onRequest?: (request: IncomingMessage) => void): Promise<string> {
  const options = {
    ...serverPair("provider"),
    ca: readFileSync(certOf("ca")),
    requestCert: true,
    rejectUnauthorized: true,
  };
  return startTlsProvider(options, onRequest).then((port) => `https://127.0.0.1:${port}`);
}

test("user and password of a provider's URL are sent as Basic authentication", async () => {
  const provider: ScriptedProvider = await startScriptedProvider();
  onTestFinished(() => provider.close());
  await acknowledge(provider.url.replace("//", "//us%20er:p%40ss%3A@"));
  await acknowledge(provider.url.replace("//", "//user@"));
  await acknowledge(provider.url);
  const base64 = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
  expect(provider.posts.map(({ headers }) => headers.authorization)).toEqual([
    base64("us er:p@ss:"),
    base64("user:"),
    undefined,
  ]);
  expect(provider.posts.map(({ path }) => path)).toEqual(Array(3).fill("/api/ad-injection/acknowledge/"));
});
