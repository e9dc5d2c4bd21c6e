/** `npm run observe`: the whole of Adrelay beside a Prometheus, and what every panel shows. Started by the bootstrap. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describeMissing, findPrometheus, PrometheusClient, provideRedis } from "@adrelay/dev-servers";
import { evaluate, loadPanelQueries } from "../e2e/observe/panels.ts";
import { parseObserveOptions } from "./bootstrap/command-line.mjs";
import type { ObserveOptions } from "./bootstrap/observe-options.mjs";
import { leaveOnSignals, makeLeave } from "./leave.ts";
import { startObserved } from "./observe/observed-stack.ts";
import { formatPanels, type ShownQuery } from "./observe/panel-table.ts";
import { optionsOrExit } from "./options-or-exit.ts";

const REDIS_CACHE = fileURLToPath(new URL("../.adrelay/redis-server", import.meta.url));
const EXIT_BROKEN = 1;

const say = (line: string) => console.log(line);

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  const options = optionsOrExit("npm run observe", parseObserveOptions(args));
  const folder = mkdtempSync(join(tmpdir(), "adrelay-observe-run-"));
  const ending = new AbortController();
  const stops: (() => Promise<void>)[] = [];
  const leave = makeLeave(folder, async () => {
    ending.abort();
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) {
      await stop();
    }
  });
  leaveOnSignals("npm run observe", leave);
  const isAllShown = await observe(options, { folder, stops, signal: ending.signal }).catch(
    (error: unknown) => {
      if (!ending.signal.aborted) {
        console.error(error);
      }
      return false;
    },
  );
  await leave(isAllShown ? 0 : EXIT_BROKEN);
}

interface Place {
  readonly folder: string;
  /** What is to be stopped in the end, the last one first. */
  readonly stops: (() => Promise<void>)[];
  readonly signal: AbortSignal;
}

async function observe({ durationMs, isKept }: ObserveOptions, place: Place): Promise<boolean> {
  const found = await findPrometheus({ log: say });
  if (found.kind === "none") {
    say(describeMissing(found));
    return false;
  }
  if (!(await provideRedis(say))) {
    return false;
  }
  const url = await startObserved({
    ...place,
    redisCacheDir: REDIS_CACHE,
    program: found.programs.prometheus,
    durationMs,
    say,
  });
  say(`\nPrometheus   ${url}\n${durationMs / 1000} s of traffic and faults`);
  await wait(durationMs, undefined, { signal: place.signal });
  const client = new PrometheusClient(url);
  const shown = await readPanels(client);
  say(`\n${formatPanels(shown)}\n\n${await describeAlerts(client)}`);
  const missing = shown.filter(({ value }) => value.kind !== "shown").length;
  say(`${shown.length - missing} of ${shown.length} queries show something`);
  if (isKept) {
    say(`\nIt goes on until Ctrl-C: ${url}`);
    await new Promise(() => {});
  }
  return missing === 0;
}

async function readPanels(client: PrometheusClient): Promise<readonly ShownQuery[]> {
  const shown: ShownQuery[] = [];
  for (const query of loadPanelQueries()) {
    shown.push({ query, value: await evaluate(client, query) });
  }
  return shown;
}

async function describeAlerts(client: PrometheusClient): Promise<string> {
  const raised = (await client.rules()).filter(({ state }) => state === "pending" || state === "firing");
  return `Alerts: ${raised.map(({ name, state }) => `${name} ${state}`).join(", ") || "none"}`;
}
