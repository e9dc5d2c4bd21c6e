/** Ops listeners whose scrapers don't do their part. */
import { once } from "node:events";
import { connect } from "node:net";
import { eventually } from "@adrelay/testkit";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { createOpsApp, createRegistry, HttpServer, LoginGuard } from "../src/index.ts";
import type { ScrapedMetric } from "../src/metrics.ts";

const log = pino({ level: "silent" });
const LONG_LABEL = "x".repeat(1000);
/** 32 MB: more than the buffers of both ends of a connection hold. */
const LONG_METRIC: ScrapedMetric = {
  name: "long",
  help: "A long metric.",
  type: "gauge",
  *samples() {
    for (let at = 0; at < 32_000; at += 1) {
      yield { labels: { at: `${at}${LONG_LABEL}` }, value: at };
    }
  },
};

test("a scraper that doesn't read loses its connection once its time is up", async () => {
  const registry = createRegistry();
  const scraped = Promise.withResolvers<void>();
  const app = createOpsApp({
    collect: async () => {
      scraped.resolve();
      return { registry, scraped: [LONG_METRIC] };
    },
    checks: [],
    isStopping: () => false,
    log,
    access: { settings: {}, listenHost: "127.0.0.1", guard: new LoginGuard({ registry, log }) },
    scrapeTimeoutMs: 300,
  });
  const server = new HttpServer(app, { name: "a test", host: "127.0.0.1", port: 0, log });
  await server.start();
  onTestFinished(() => server.stop(AbortSignal.abort()));
  const socket = connect({ port: server.port, host: "127.0.0.1" }).on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  socket.pause().write("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  await scraped.promise;
  await eventually(() => expect(server.connections).toBe(0), 20_000);
});
