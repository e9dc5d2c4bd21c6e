/** The naive way for injections: an Express server that passes unread bodies on with undici. */
import { INJECTION_PATH } from "@adrelay/contract";
import express from "express";
import { request } from "undici";

const url = `${process.env["PROVIDER_URL"] ?? ""}${INJECTION_PATH}`;
const app = express();
app.post(INJECTION_PATH, express.raw({ type: "application/json" }), async (incoming, outgoing) => {
  const { statusCode, headers, body } = await request(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: incoming.body,
  });
  const bytes = Buffer.from(await body.arrayBuffer());
  outgoing.status(statusCode).type(String(headers["content-type"])).send(bytes);
});
const server = app.listen(Number(process.env["PORT"]), "127.0.0.1", () => process.send?.({ kind: "ready" }));
for (const end of ["SIGTERM", "disconnect"]) {
  process.on(end, () => {
    server.closeAllConnections();
    process.exit(0);
  });
}
