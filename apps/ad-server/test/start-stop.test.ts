/** The ad server's long-lived parts keep the contract of start and stop. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually, pause } from "@adrelay/testkit";
import { startStopSuite } from "@adrelay/testkit/start-stop-suite";
import express from "express";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { CatalogWatch } from "../src/catalog/catalog-watch.ts";
import { CurrentCatalog } from "../src/catalog/current-catalog.ts";
import { stateAtStart } from "../src/catalog/file-state.ts";
import { FaultInjector } from "../src/faults/fault-injector.ts";
import { FaultPlan, parseFaultRules } from "../src/faults/fault-rules.ts";
import { loadPromptRules } from "../src/injection/decide-injection.ts";
import { NegativeKeywords } from "../src/relevance/negative-keywords.ts";
import { NegativeTopics } from "../src/relevance/negative-topics.ts";
import { sweepReservations } from "../src/store/response-store.ts";
import { SHIPPED_MODEL } from "../testdata/shipped-model.ts";
import { openTestStore } from "./test-store.ts";

const log = pino({ level: "silent" });
const stops: (() => unknown)[] = [];
let folder: string;
let store: Awaited<ReturnType<typeof openTestStore>>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "adrelay-start-stop-"));
  store = await openTestStore();
});
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
});
afterAll(async () => {
  await store.dispose();
  rmSync(folder, { recursive: true });
});

const promptRules = await loadPromptRules(SHIPPED_MODEL);

startStopSuite(
  "the catalogue's watch",
  async () => {
    const file = join(folder, randomUUID());
    let reads = 0;
    const watch = new CatalogWatch({
      file,
      readState: stateAtStart(file),
      intervalMs: 1,
      current: await CurrentCatalog.open([], {
        now: () => 0,
        buildRules: async () => ({
          ...promptRules,
          relevance: { rank: () => [] },
          negativeKeywords: NegativeKeywords.of([]),
          negativeTopics: await NegativeTopics.build([], promptRules.model),
          floorCpmMicros: 0,
        }),
      }),
      log,
      read: async () => {
        reads += 1;
        return { kind: "faulty", faults: [] };
      },
      onOutcome: () => {},
    });
    stops.push(() => watch.stop());
    return {
      start: () => watch.start(),
      stop: () => watch.stop(),
      isRunning: async () => {
        const before = reads;
        writeFileSync(file, randomUUID());
        await pause(50);
        return reads > before;
      },
    };
  },
  { isRunning: (part) => part.isRunning() },
);

startStopSuite("the sweep of reservations", () => sweepReservations(store.storeOf(1000), log));

/** What it starts is a call that hangs, until the stop disconnects it. */
startStopSuite(
  "the injector of faults",
  async () => {
    const rules = parseFaultRules("any:hang");
    const faults = new FaultInjector(new FaultPlan(rules.kind === "ok" ? rules.rules : []));
    const server = express()
      .use((_request, response) => {
        if (faults.inject("start", response) === undefined) {
          response.sendStatus(204);
        }
      })
      .listen(0, "127.0.0.1");
    stops.push(() => closeServer(server));
    await once(server, "listening");
    let hanging = 0;
    const call = async () => {
      hanging += 1;
      await fetch(`http://127.0.0.1:${Object(server.address()).port}`).catch(() => {});
      hanging -= 1;
    };
    return {
      start: () => void call(),
      // A call may reach the server after the stop, and is served then.
      stop: async () => {
        faults.stop();
        await eventually(() => expect(hanging).toBe(0));
      },
      isRunning: async () => {
        await pause(20);
        return hanging > 0;
      },
    };
  },
  { isRunning: (part) => part.isRunning() },
);

function closeServer(server: Server): void {
  server.close();
  server.closeAllConnections();
}
