/** The naive way for models: Node's HTTP server, undici.request and a pipe. No keys, no ads, no reading of what passes. */
import { createServer } from "node:http";
import { pipeline } from "node:stream/promises";
import { Agent, request } from "undici";
import { endToEnd } from "./end-to-end.ts";

const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0, allowH2: false });
const base = process.env["MODEL_URL"] ?? "";

const server = createServer(async (incoming, outgoing) => {
  try {
    const { statusCode, headers, body } = await request(`${base}${incoming.url}`, {
      dispatcher,
      method: "POST",
      headers: endToEnd(incoming.headers),
      body: incoming,
    });
    outgoing.writeHead(statusCode, endToEnd(headers));
    await pipeline(body, outgoing);
  } catch {
    outgoing.destroy();
  }
});
server.listen(Number(process.env["PORT"]), "127.0.0.1", () => process.send?.({ kind: "ready" }));
for (const end of ["SIGTERM", "disconnect"]) {
  process.on(end, () => {
    server.closeAllConnections();
    process.exit(0);
  });
}
