import { BOOKED_STATES, type Stats, statsSchema } from "@adrelay/contract";
import { defineCommand } from "../command.ts";
import { describeAge, describeMoment, describeSeconds } from "../moments.ts";
import { showCall } from "../session.ts";
import type { Terminal } from "../terminal.ts";

export const addStatus = defineCommand({
  words: "status",
  describe: "How the relay stands: states, dead letters, providers, processes",
  options: (yargs) => yargs,
  run: (_args, session) =>
    showCall(session, { path: "/stats", schema: statsSchema }, (stats) =>
      showStats(session.terminal, stats, session.now()),
    ),
});

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
    ...BOOKED_STATES.map((state) => counts[state]),
  ];
  const each = Object.entries(publishers).map(([publisher, counts]) => row(publisher, counts));
  const head = ["PUBLISHER", ...BOOKED_STATES.map((state) => state.toUpperCase())];
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
