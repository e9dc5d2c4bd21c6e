/** Models' servers over TLS: with an authority and a client certificate of the settings, and through a proxy. */
import { readFileSync } from "node:fs";
import { createServer as createHttpServer, request as httpRequest, type IncomingMessage } from "node:http";
import { createServer } from "node:https";
import { connect, type Server } from "node:net";
import { fileURLToPath } from "node:url";
import { FileReader, loadTls, type ProviderTls } from "@adrelay/provider";
import { expect, onTestFinished, test } from "vitest";
import { loadProxyConfig } from "../src/config.ts";
import { bodyOf, CHAT, type FixtureOptions, KEY_HEADERS, startProxy } from "./http-fixture.ts";

const fileOf = (name: string) =>
  fileURLToPath(new URL(`../../../packages/provider/testdata/tls/${name}.pem`, import.meta.url));
const NAMES = { ca: "ca", clientCert: "cert", clientKey: "key" };

function tlsOf(client?: string): ProviderTls | undefined {
  const files = {
    ca: fileOf("ca"),
    clientCert: client === undefined ? undefined : fileOf(client),
    clientKey: client === undefined ? undefined : fileOf(`${client}-key`),
  };
  const loaded = loadTls(files, NAMES, new FileReader());
  return loaded.kind === "ok" ? loaded.tls : expect.fail(JSON.stringify(loaded.faults));
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return Object(server.address()).port;
}

/** A model's server that demands a certificate of the test's authority, and echoes bodies. */
function startTlsModel(): Promise<number> {
  const pair = { cert: readFileSync(fileOf("provider")), key: readFileSync(fileOf("provider-key")) };
  const demands = { requestCert: true, rejectUnauthorized: true, ca: readFileSync(fileOf("ca")) };
  const server = createServer({ ...pair, ...demands }, async (request, response) => {
    const body = await bodyOf(request);
    response.setHeader("x-beta", request.headersDistinct["anthropic-beta"]?.join(", ") ?? "");
    response.setHeader("x-alpn", String(Object(request.socket).alpnProtocol)).end(body);
  });
  server.on("tlsClientError", () => {});
  onTestFinished(() => server.closeAllConnections());
  return listen(server);
}

async function call(modelUrl: string, options: FixtureOptions) {
  const proxy = await startProxy(modelUrl, options);
  onTestFinished(() => proxy.stop());
  // With fetch, two lines of a header would go as one.
  const request = httpRequest(`${proxy.url}/v1/chat/completions`, {
    method: "POST",
    headers: { ...KEY_HEADERS, "anthropic-beta": ["one", "two"] },
  });
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once("response", resolve).once("error", reject).end(CHAT);
  });
  const text = String(await bodyOf(answer));
  const { "x-alpn": alpn, "x-beta": beta } = answer.headers;
  return { status: answer.statusCode, text, alpn, beta };
}

test("a model's server of our own authority is called with our certificate, in HTTP/1.1", async () => {
  const port = await startTlsModel();
  const answer = await call(`https://127.0.0.1:${port}`, { tls: tlsOf("relay") });
  expect(answer).toEqual({ status: 200, text: CHAT, alpn: "http/1.1", beta: "one, two" });
});

test.each([
  ["its authority", undefined],
  ["our certificate", tlsOf()],
])("without %s the call gets 502", async (_, tls) => {
  const port = await startTlsModel();
  const answer = await call(`https://127.0.0.1:${port}`, { tls });
  expect(answer.status).toBe(502);
  expect(JSON.parse(answer.text)).toMatchObject({ error: { message: expect.stringMatching(/^Adrelay/) } });
});

test("a proxy of HTTPS_PROXY opens a tunnel with its own password, and sees no call", async () => {
  const port = await startTlsModel();
  const seen: string[] = [];
  const way = createHttpServer((_, response) => response.writeHead(500).end());
  way.on("connect", (request, socket) => {
    seen.push(`${request.url} ${request.headers["proxy-authorization"]}`);
    const onward = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      socket
        .on("error", () => onward.destroy())
        .pipe(onward)
        .pipe(socket);
    });
    onward.on("error", () => socket.destroy());
    onTestFinished(() => void socket.destroy());
  });
  const proxies = {
    http: undefined,
    https: `http://relay:secret@127.0.0.1:${await listen(way)}`,
    exempt: [],
  };
  const answer = await call(`https://provider.test:${port}`, { tls: tlsOf("relay"), proxies });
  expect(answer).toMatchObject({ status: 200, text: CHAT });
  expect(answer.beta).toBe("one, two");
  expect(seen).toEqual([`provider.test:${port} Basic ${btoa("relay:secret")}`]);
});

test("faulty certificate files are named at start, all together", () => {
  const loaded = loadProxyConfig({
    PROVIDER_API_KEY: "k",
    API_KEYS: "key-of-a-caller-0123456789",
    MODEL_CA_FILE: "/nowhere/ca.pem",
    MODEL_CLIENT_CERT_FILE: fileOf("relay"),
  });
  const faults = loaded.kind === "faulty" ? loaded.faults.map(({ path }) => path) : [];
  expect(faults).toContain("MODEL_CA_FILE");
});
