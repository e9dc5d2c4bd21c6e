/** Bulk discards: how they are shown, and the commands `adrelay discards …`. */
import { type DiscardView, discardListSchema, discardViewSchema } from "@adrelay/contract";
import {
  type BulkResource,
  cancelBulk,
  describeFilter,
  describeLeftOut,
  followBulk,
  showBulk,
} from "./bulk-changes.ts";
import { defineCommand, discardPositional } from "./command.ts";
import { showCall } from "./session.ts";
import { describeMoment, type Terminal } from "./terminal.ts";

export const DISCARDS: BulkResource<DiscardView> = {
  noun: "discard",
  schema: discardViewSchema,
  idOf: ({ discard_id }) => discard_id,
  progressOf: ({ matched, discarded, state }) => ({
    matched,
    done: discarded,
    isRunning: state === "running",
    isSettled: true,
    text: `${discarded} of ${matched} discarded`,
    shortText: `${discarded} of ${matched}`,
    leftSeconds: undefined,
  }),
  endedEarly: ({ state }) => state === "cancelled",
  failureOf: () => undefined,
  show: showDiscard,
};

export const addDiscardsList = defineCommand({
  words: "list",
  describe: "Lists the latest bulk discards, newest first",
  options: (yargs) => yargs,
  run: (_args, session) =>
    showCall(session, { path: "/discards", schema: discardListSchema }, ({ discards }) =>
      showDiscards(session.terminal, discards, session.now()),
    ),
});

export const addDiscardsShow = defineCommand({
  words: "show <id>",
  describe: "Shows one bulk discard",
  options: (yargs) =>
    yargs
      .positional("id", discardPositional)
      .demandOption("id")
      .option("watch", { type: "boolean", default: false, describe: "Show the progress until the end" }),
  run: ({ id, watch }, session) =>
    watch ? followBulk(session, DISCARDS, id) : showBulk(session, DISCARDS, id),
});

export const addDiscardsCancel = defineCommand({
  words: "cancel <id>",
  describe: "Cancels a bulk discard; what it has discarded stays discarded",
  options: (yargs) => yargs.positional("id", discardPositional).demandOption("id"),
  run: ({ id }, session) => cancelBulk(session, DISCARDS, id),
});

function showDiscards(terminal: Terminal, discards: readonly DiscardView[], nowMs: number): void {
  if (discards.length === 0) {
    terminal.note("No bulk discards yet.");
    return;
  }
  const rows = discards.map((discard) => [
    discard.discard_id,
    discard.state,
    `${discard.discarded} of ${discard.matched}`,
    describeFilter(discard.filter),
    discard.created_by,
    describeMoment(discard.created_at, nowMs),
  ]);
  terminal.table(["DISCARD", "STATE", "DISCARDED", "FILTER", "BY", "STARTED"], rows);
}

function showDiscard(terminal: Terminal, discard: DiscardView, nowMs: number): void {
  const moment = (time: string | null) => (time === null ? null : describeMoment(time, nowMs));
  terminal.facts({
    discard: discard.discard_id,
    state: discard.state,
    discarded: `${discard.discarded} of ${discard.matched}`,
    "left out": describeLeftOut(discard.state, discard.matched - discard.discarded),
    filter: describeFilter(discard.filter),
    by: discard.created_by,
    started: moment(discard.created_at),
    updated: moment(discard.updated_at),
    ended: moment(discard.ended_at),
  });
}
