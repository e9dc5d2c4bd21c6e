import { createLogger, Lifecycle, type RunnableService, startHttpServer } from "@adrelay/service-kit";
import type { DemoModelConfig } from "./config.ts";
import { createDemoModelApp } from "./http/app.ts";
import { CallRecords } from "./http/call-records.ts";
import { OpenAnswers } from "./http/open-answers.ts";

/** Creates every part of the demo model and starts it. A stop cuts the answers that are under way. */
export async function composeDemoModel(config: DemoModelConfig): Promise<RunnableService> {
  const { host, port, delayMs, recordsMax, logLevel, shutdownTimeoutMs } = config;
  const log = createLogger("demo-model", logLevel);
  const lifecycle = new Lifecycle(log);
  const openAnswers = new OpenAnswers();
  const app = createDemoModelApp({ log, openAnswers, delayMs, records: new CallRecords(recordsMax) });
  const server = await startHttpServer(app, {
    name: "the demo model",
    host,
    port,
    log,
    isStopping: () => lifecycle.isStopping,
  });
  lifecycle.onStop("http", (signal) => server.stop(signal));
  lifecycle.onStop("answers", () => openAnswers.cutAll());
  return { log, lifecycle, shutdownTimeoutMs, listening: { port: server.port } };
}
