import { readFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { TlsOptions } from "node:tls";
import { fileURLToPath } from "node:url";
import { FileReader } from "../src/file-reader.ts";
import { loadTls, type ProviderTls, type TlsFiles } from "../src/tls-files.ts";
import { listenInTest } from "./raw-server.ts";

/** Certificates and keys of testdata/tls; make-certificates.sh there says what they are. */
type FixtureName = "ca" | "provider" | "expired" | "relay" | "self-signed";

const pathOf = (file: string) => fileURLToPath(new URL(`../testdata/tls/${file}`, import.meta.url));
export const certOf = (name: FixtureName) => pathOf(`${name}.pem`);
export const keyOf = (name: FixtureName) => pathOf(`${name}-key.pem`);

/** For a server with this certificate. */
export function serverPair(name: FixtureName): Pick<TlsOptions, "cert" | "key"> {
  return { cert: readFileSync(certOf(name)), key: readFileSync(keyOf(name)) };
}

/** Files of a provider account: the test's authority, and a client certificate if it is named. */
export function filesOf(client?: FixtureName): TlsFiles {
  return {
    ca: certOf("ca"),
    clientCert: client === undefined ? undefined : certOf(client),
    clientKey: client === undefined ? undefined : keyOf(client),
  };
}

/** The files, loaded. */
export function tlsOf(files: TlsFiles): ProviderTls | undefined {
  const loaded = loadTls(files, { ca: "ca", clientCert: "cert", clientKey: "key" }, new FileReader());
  return loaded.kind === "ok" ? loaded.tls : undefined;
}

const OK_BODY = { ad_ack_id: "0b0f7a52-5c1c-8a0b-9a55-2f5a5f7b8f10", status: "ok", success: true };

/** An HTTPS provider that accepts everything, until the end of the test. Returns its port. */
export function startTlsProvider(
  options: TlsOptions,
  onRequest: RequestListener = () => {},
): Promise<number> {
  const server = createServer(options, (request, response) => {
    onRequest(request, response);
    request.resume().once("end", () => response.end(JSON.stringify(OK_BODY)));
  });
  return listenInTest(server);
}
