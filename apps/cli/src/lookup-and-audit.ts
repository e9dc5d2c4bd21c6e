/** The commands `adrelay lookup` and `adrelay audit`, and how one acknowledgment is shown. */
import { type AcknowledgmentDetail, acknowledgmentDetailSchema, auditPageSchema } from "@adrelay/contract";
import { acknowledgmentPath } from "./admin-client.ts";
import { adResponsePositional, defineCommand } from "./command.ts";
import { cursorOption, limitOption } from "./selection-options.ts";
import { showCall } from "./session.ts";
import { describeMembers, describeMoment, type Terminal } from "./terminal.ts";

export const addLookup = defineCommand({
  words: "lookup <id>",
  describe: "Shows one acknowledgment: its state, times and attempts",
  options: (yargs) => yargs.positional("id", adResponsePositional).demandOption("id"),
  run: ({ id }, session) =>
    showCall(session, { path: acknowledgmentPath(id), schema: acknowledgmentDetailSchema }, (found) =>
      showAcknowledgment(session.terminal, found, session.now()),
    ),
});

/** Shows what is known about one acknowledgment, then its attempts. */
export function showAcknowledgment(terminal: Terminal, one: AcknowledgmentDetail, nowMs: number): void {
  const moment = (time: string | null) => (time === null ? null : describeMoment(time, nowMs));
  terminal.facts({
    "ad response": one.ad_response_id,
    "ad ack": one.ad_ack_id,
    publisher: one.publisher,
    state: one.late ? `${one.state} (late)` : one.state,
    "waits for": describeWait(one),
    turn: describeTurn(one),
    verdict: one.status,
    finding: describeFinding(one),
    reason: one.reason_text === null ? one.reason : `${one.reason}: ${one.reason_text}`,
    "last code": one.last_code,
    "provider's code": one.provider_error,
    "provider ack": one.provider_ack_id,
    bytes: one.size_bytes,
    recorded: moment(one.recorded_at),
    deadline: moment(one.deadline_at),
    accepted: moment(one.accepted_at),
    queued: moment(one.queued_at),
    "next attempt": moment(one.next_attempt_at),
    ended: moment(one.ended_at),
    attempts: one.attempts,
    retries: one.failed_attempts > 0 ? `${one.failed_attempts} since it was last queued` : null,
  });
  if (one.attempt_log.length > 0) {
    terminal.print("");
    terminal.table(
      ["ATTEMPT AT", "OUTCOME", "CODE", "MS"],
      one.attempt_log.map(({ at, outcome, ambiguous, code, duration_ms }) => [
        at,
        ambiguous === true ? "ambiguous" : outcome,
        code,
        duration_ms,
      ]),
    );
  }
}

/** An open turn of the model proxy: it is acknowledged once it ends. */
function describeTurn({ turn }: AcknowledgmentDetail): string | null {
  return turn === null ? null : `open in the model proxy (${turn.dialect}, step ${turn.steps})`;
}

/** What the model proxy found, to be read beside the provider's verdict. */
function describeFinding({ finding }: AcknowledgmentDetail): string | null {
  if (finding === null) {
    return null;
  }
  const { mention, labelled } = finding;
  return mention === "none" || mention === "unknown"
    ? `mention ${mention}`
    : `mention ${mention}, ${labelled ? "labelled" : "not labelled"}`;
}

function describeWait({ waits_for, circuit_reason }: AcknowledgmentDetail): string | null {
  switch (waits_for) {
    case "publisher":
      return "its publisher, which is gone from the settings";
    case "provider":
      return `its provider, whose circuit breaker is open${circuit_reason === null ? "" : ` (${circuit_reason})`}`;
    case null:
      return null;
    default:
      return waits_for satisfies never;
  }
}

export const addAudit = defineCommand({
  words: "audit",
  describe: "Lists which operator replayed, discarded, erased, cancelled or gave away what, newest first",
  options: (yargs) => yargs.option("limit", limitOption(50)).option("cursor", cursorOption),
  run: ({ limit, cursor }, session) => {
    const query = { limit: String(limit), cursor };
    return showCall(session, { path: "/audit", query, schema: auditPageSchema }, (page) => {
      const rows = page.entries.map((entry) => [
        describeMoment(entry.at, session.now()),
        entry.by,
        entry.address ?? "-",
        entry.action,
        entry.ad_response_id ?? entry.replay_id ?? entry.discard_id ?? "-",
        describeMembers(describeAudited(entry.action, entry.details)),
      ]);
      if (rows.length === 0) {
        session.terminal.note("The audit is empty.");
        return;
      }
      session.terminal.table(["AT", "BY", "FROM", "ACTION", "ID", "DETAILS"], rows);
      if (page.next_cursor !== null) {
        session.terminal.note(`For the next page add --cursor ${page.next_cursor}`);
      }
    });
  },
});

/** The API calls an operator's text `reason` if it was for single ids, and `why` if it was for a filter. */
function describeAudited(action: string, details: unknown): unknown {
  const { reason, ...others } = Object(details);
  return action === "discard" || action === "erase" ? { why: reason, ...others } : details;
}
