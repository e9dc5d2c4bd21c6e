/** The commands `adrelay status` and `adrelay doctor`. */
import {
  COUNTED_STATES,
  type DoctorCheck,
  doctorReportSchema,
  type ProcessView,
  type Readiness,
  type Stats,
  statsSchema,
} from "@adrelay/contract";
import { defineCommand } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { type Session, showAnswer } from "./session.ts";
import { quotaRows, storageFacts } from "./storage-status.ts";
import { describeAge, describeMoment, describeSeconds, printable, type Terminal } from "./terminal.ts";

export const addStatus = defineCommand({
  words: "status",
  describe: "Shows readiness, states, dead letters, providers and processes of the relay",
  options: (yargs) => yargs,
  run: async (_args, session) => {
    const { client, terminal, isJson } = session;
    const [stats, readiness] = await Promise.all([
      client.call({ path: "/stats", schema: statsSchema }),
      isJson ? undefined : client.readiness(),
    ]);
    if (readiness !== undefined) {
      // Readiness is shown even if there are no numbers, because it says why.
      showRelay(session);
      showReadiness(terminal, readiness);
    }
    return showAnswer(session, stats, (value) => showStats(terminal, value, session.now()));
  },
});

/** An operator may have several relays, and a local stack comes before the default address. */
function showRelay({ terminal, relay: { url, source } }: Session): void {
  terminal.print(`${terminal.color.bold("relay")}    ${printable(`${url} (${source})`)}`);
}

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
  const { queue } = stats;
  terminal.print("");
  terminal.facts({
    "oldest queued": describeSeconds(stats.oldest_queued_age_seconds),
    "oldest dead letter": describeSeconds(stats.oldest_dead_letter_age_seconds),
    overdue: stats.overdue,
    "open turns": Object.values(stats.open_turns).reduce((sum, open) => sum + open, 0),
    queue:
      queue === null ? null : `${queue.waiting} waiting, ${queue.active} active, ${queue.delayed} delayed`,
    "texts of dead letters": queue === null ? null : queue.failed,
    ...storageFacts(stats),
    version: stats.version,
  });
  if (stats.dead_letters.length > 0) {
    const rows = stats.dead_letters.map(({ publisher, reason, count }) => [publisher, reason, count]);
    showSection(terminal, ["DEAD LETTERS OF", "REASON", "COUNT"], rows);
  }
  const quotas = quotaRows(stats);
  if (quotas.length > 0) {
    showSection(terminal, ["QUOTA OF", "QUOTA", "USED", "REFUSED HERE"], quotas);
  }
  showProviders(terminal, stats, nowMs);
  showForeignCircuits(terminal, stats, nowMs);
  showGonePublishers(terminal, stats);
  showProcesses(terminal, stats, nowMs);
}

function showStates(terminal: Terminal, { states, publishers }: Stats): void {
  const row = (name: string, counts: Stats["states"]) => [
    name,
    ...COUNTED_STATES.map((state) => counts[state]),
  ];
  const rows = Object.entries(publishers).map(([publisher, counts]) => row(publisher, counts));
  const head = ["PUBLISHER", ...COUNTED_STATES.map((state) => state.toUpperCase())];
  // With a single publisher the sum would repeat its row.
  terminal.table(head, rows.length === 1 ? rows : [...rows, row("all", states)]);
}

function showProviders(terminal: Terminal, { providers }: Stats, nowMs: number): void {
  const rows = providers.map((one) => [
    one.provider,
    one.publishers.join(", "),
    one.reason === null ? one.circuit : `${one.circuit} (${one.reason})`,
    describeMoment(one.since, nowMs),
    describeMoment(one.next_probe_at, nowMs),
    one.parked,
  ]);
  if (rows.length > 0) {
    showSection(terminal, ["PROVIDER", "PUBLISHERS", "CIRCUIT", "SINCE", "NEXT PROBE", "PARKED"], rows);
  }
}

/** Processes that were left behind when a URL or a key was changed. */
function showForeignCircuits(terminal: Terminal, { foreign_circuits: circuits }: Stats, nowMs: number): void {
  const rows = circuits.map((one) => [
    one.process,
    one.provider,
    `open (${one.reason ?? "-"})`,
    describeMoment(one.since, nowMs),
  ]);
  if (rows.length > 0) {
    showSection(terminal, ["WITH ANOTHER URL OR KEY", "PROVIDER", "CIRCUIT", "SINCE"], rows);
  }
}

function showGonePublishers(terminal: Terminal, { gone_publishers: gone }: Stats): void {
  const rows = gone.map(({ publisher, queued, dead, awaiting }) => [publisher, queued, dead, awaiting]);
  if (rows.length > 0) {
    showSection(terminal, ["GONE FROM THE SETTINGS", "QUEUED", "DEAD", "AWAITING"], rows);
  }
}

function showProcesses(terminal: Terminal, { processes }: Stats, nowMs: number): void {
  const rows = (processes ?? []).map((one) => [
    one.role,
    one.host,
    one.pid,
    one.version,
    describeAge(one.started_at, nowMs),
    describeAge(one.seen_at, nowMs),
    one.clock_skew_ms === null ? "-" : `${one.clock_skew_ms} ms`,
    describeFile(one.publishers_file),
  ]);
  if (processes !== null) {
    const head = ["PROCESS", "HOST", "PID", "VERSION", "STARTED", "SEEN", "CLOCK SKEW", "PUBLISHERS FILE"];
    showSection(terminal, head, rows);
  }
}

/** Processes with the same file have the same digest. */
function describeFile(file: ProcessView["publishers_file"]): string {
  return file?.valid === false ? `${file.digest ?? "-"}, refuses a newer one` : (file?.digest ?? "-");
}

function showSection(terminal: Terminal, head: readonly string[], rows: (string | number)[][]): void {
  terminal.print("");
  terminal.table(head, rows);
}

export const addDoctor = defineCommand({
  words: "doctor",
  describe: "Checks everything that the relay depends on; fails if it finds a fault",
  options: (yargs) => yargs,
  run: async (_args, session) => {
    const answer = await session.client.call({ path: "/doctor", schema: doctorReportSchema });
    const exit = showAnswer(session, answer, ({ checks }) => {
      showRelay(session);
      for (const check of checks) {
        showCheck(session.terminal, check);
      }
    });
    const hasFault = answer.kind === "ok" && answer.value.checks.some(({ status }) => status === "fail");
    return hasFault ? EXIT.refused : exit;
  },
});

/** Shows one check of a report. */
export function showCheck(terminal: Terminal, { name, status, detail }: DoctorCheck): void {
  const { green, yellow, red } = terminal.color;
  const paint = { ok: green, warn: yellow, fail: red }[status];
  terminal.print(`${paint(status.padEnd(4))}  ${printable(`${name}: ${detail}`)}`);
}
