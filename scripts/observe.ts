/** `npm run observe`: all of Adrelay beside a Prometheus, and what every panel shows. The bootstrap starts it. */
import { setTimeout as wait } from "node:timers/promises";
import { describeMissing, findPrometheus, PrometheusClient, provideRedis } from "@adrelay/dev-servers";
import { evaluate, loadPanelQueries } from "../deploy/grafana/src/panels.ts";
import { OBSERVE_COMMAND, type ObserveOptions } from "../e2e/observe/options.mjs";
import { optionsOrExit } from "./bootstrap/command-line.mjs";
import { longRun } from "./long-run.ts";
import { startObserved } from "./observe/observed-stack.ts";
import { formatPanels, type ShownQuery } from "./observe/panel-table.ts";

const NAME = "npm run observe";

const say = (line: string) => console.log(line);

const options = optionsOrExit(NAME, OBSERVE_COMMAND);
/** The stops of what runs, in the order of the starts. */
const stops: (() => Promise<void>)[] = [];
await longRun({
  name: NAME,
  run: (folder, signal) => observe(options, { folder, stops, signal }),
  stopFirst: async () => {
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) {
      await stop();
    }
  },
});

interface Place {
  readonly folder: string;
  /** Receives the stop of each part that was started. The last one is called first. */
  readonly stops: (() => Promise<void>)[];
  readonly signal: AbortSignal;
}

/** Resolves to whether every query shows something. */
async function observe({ durationMs, isKept }: ObserveOptions, place: Place): Promise<boolean> {
  const found = await findPrometheus({ log: say });
  if (found.kind === "none") {
    say(describeMissing(found));
    return false;
  }
  if (!(await provideRedis(say))) {
    return false;
  }
  const url = await startObserved({ ...place, program: found.programs.prometheus, durationMs, say });
  say(`\nPrometheus   ${url}\n${durationMs / 1000} s of traffic and faults`);
  await wait(durationMs, undefined, { signal: place.signal });
  const client = new PrometheusClient(url);
  const shown = await readPanels(client);
  say(`\n${formatPanels(shown)}\n\n${await describeAlerts(client)}`);
  const missing = shown.filter(({ value }) => value.kind !== "shown").length;
  say(`${shown.length - missing} of ${shown.length} queries show something`);
  if (isKept) {
    say(`\nIt runs until Ctrl-C: ${url}`);
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
