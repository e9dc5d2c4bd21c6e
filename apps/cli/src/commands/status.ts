import { COUNTED_STATES, type Readiness, type Stats, statsSchema } from "@adrelay/contract";
import { defineCommand } from "../command.ts";
import { describeAge, describeMoment, describeSeconds } from "../moments.ts";
import { showAnswer } from "../session.ts";
import { printable, type Terminal } from "../terminal.ts";

export const addStatus = defineCommand({
  words: "status",
  describe: "How the relay stands: readiness, states, dead letters, providers, processes",
  options: (yargs) => yargs,
  run: async (_args, session) => {
    const { client, terminal, isJson } = session;
    const [stats, readiness] = await Promise.all([
      client.call({ path: "/stats", schema: statsSchema }),
      isJson ? undefined : client.readiness(),
    ]);
    if (readiness !== undefined) {
      // Also where there are no numbers: then it says why.
      showReadiness(terminal, readiness);
    }
    return showAnswer(session, stats, (value) => showStats(terminal, value, session.now()));
  },
});

function showReadiness(terminal: Terminal, { status, stopping, checks, warnings }: Readiness): void {
  const { red, green, yellow } = terminal.color;
  const state = status === "ready" ? green("ready") : red(stopping ? "stopping" : "not ready");
  const each = Object.entries(checks).map(([name, found]) => `${name} ${found}`);
  terminal.print(`${terminal.color.bold("gateway")}  ${state} (${printable(each.join(", "))})`);
  for (const [name, text] of Object.entries(warnings ?? {})) {
    terminal.print(yellow(`warning  ${printable(`${name}: ${text}`)}`));
  }
  terminal.print("");
}

function showStats(terminal: Terminal, stats: Stats, nowMs: number): void {
  if (stats.data_loss !== null) {
    const { at, detail } = stats.data_loss;
    terminal.print(terminal.color.red(`Redis lost data at ${describeMoment(at, nowMs)}: ${detail}`));
    terminal.print("");
  }
  showStates(terminal, stats);
  const { waiting, active, delayed, failed } = stats.queue;
  terminal.print("");
  terminal.facts({
    "oldest queued": describeSeconds(stats.oldest_queued_age_seconds),
    "oldest dead letter": describeSeconds(stats.oldest_dead_letter_age_seconds),
    overdue: stats.overdue,
    queue: `${waiting} waiting, ${active} active, ${delayed} delayed, ${failed} failed`,
    version: stats.version,
  });
  if (stats.dead_letters.length > 0) {
    const rows = stats.dead_letters.map(({ publisher, reason, count }) => [publisher, reason, count]);
    showSection(terminal, ["DEAD LETTERS OF", "REASON", "COUNT"], rows);
  }
  showProviders(terminal, stats, nowMs);
  showProcesses(terminal, stats, nowMs);
}

function showStates(terminal: Terminal, { states, publishers }: Stats): void {
  const row = (name: string, counts: Stats["states"]) => [
    name,
    ...COUNTED_STATES.map((state) => counts[state]),
  ];
  const each = Object.entries(publishers).map(([publisher, counts]) => row(publisher, counts));
  const head = ["PUBLISHER", ...COUNTED_STATES.map((state) => state.toUpperCase())];
  terminal.table(
    head,
    each.length > 1 ? [...each, row("all", states)] : [...each, row("all", states)].slice(0, 1),
  );
}

function showProviders(terminal: Terminal, { providers }: Stats, nowMs: number): void {
  const rows = providers.map((standing) => [
    standing.provider,
    standing.publishers.join(", "),
    standing.reason === null ? standing.circuit : `${standing.circuit} (${standing.reason})`,
    describeMoment(standing.since, nowMs),
    describeMoment(standing.next_probe_at, nowMs),
    standing.parked,
  ]);
  if (rows.length > 0) {
    showSection(terminal, ["PROVIDER", "PUBLISHERS", "CIRCUIT", "SINCE", "NEXT PROBE", "PARKED"], rows);
  }
}

function showProcesses(terminal: Terminal, { processes }: Stats, nowMs: number): void {
  const rows = processes.map((one) => [
    one.role,
    one.host,
    one.pid,
    one.version,
    describeAge(one.started_at, nowMs),
    describeAge(one.seen_at, nowMs),
    one.clock_skew_ms === null ? "-" : `${one.clock_skew_ms} ms`,
  ]);
  showSection(terminal, ["PROCESS", "HOST", "PID", "VERSION", "STARTED", "SEEN", "CLOCK SKEW"], rows);
}

function showSection(terminal: Terminal, head: readonly string[], rows: (string | number)[][]): void {
  terminal.print("");
  terminal.table(head, rows);
}
