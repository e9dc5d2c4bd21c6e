/** Bulk discards: how they are shown, and the commands `adrelay discards …`. */
import { type DiscardView, discardListSchema, discardViewSchema } from "@adrelay/contract";
import { type BulkResource, describeFilter, describeLeftOut } from "./bulk-changes.ts";
import { defineBulkCommands } from "./bulk-commands.ts";
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
    text: `${describeDone(discarded, matched)} discarded`,
    shortText: describeDone(discarded, matched),
    leftSeconds: undefined,
  }),
  endedEarly: ({ state }) => state === "cancelled",
  failureOf: () => undefined,
  show: showDiscard,
};

export const addAllDiscards = defineBulkCommands({
  resource: DISCARDS,
  listSchema: discardListSchema,
  showList: (terminal, { discards }, nowMs) => showDiscards(terminal, discards, nowMs),
  about: {
    show: "",
    cancel: "what it has discarded stays discarded",
  },
});

function showDiscards(terminal: Terminal, discards: readonly DiscardView[], nowMs: number): void {
  if (discards.length === 0) {
    terminal.note("No bulk discards yet.");
    return;
  }
  const rows = discards.map((discard) => [
    discard.discard_id,
    discard.state,
    describeDone(discard.discarded, discard.matched),
    describeCovered(discard),
    discard.created_by,
    describeMoment(discard.created_at, nowMs),
  ]);
  terminal.table(["DISCARD", "STATE", "DISCARDED", "FILTER", "BY", "STARTED"], rows);
}

/** Such as `3 of 4`. A count of queued ones may have been cut short, and then it says nothing of the whole. */
function describeDone(discarded: number, matched: number): string {
  return matched === 0 || discarded > matched ? String(discarded) : `${discarded} of ${matched}`;
}

/** Such as `queued unknown=true`. Most discards are of dead letters, so these are not named. */
function describeCovered({ of, filter }: DiscardView): string {
  return of === "dead" ? describeFilter(filter) : `${of} ${describeFilter(filter)}`;
}

function showDiscard(terminal: Terminal, discard: DiscardView, nowMs: number): void {
  const moment = (time: string | null) => (time === null ? null : describeMoment(time, nowMs));
  terminal.facts({
    discard: discard.discard_id,
    state: discard.state,
    discarded: describeDone(discard.discarded, discard.matched),
    "left out": describeLeftOut(discard.state, discard.matched - discard.discarded, discard.of),
    filter: describeCovered(discard),
    by: discard.created_by,
    started: moment(discard.created_at),
    updated: moment(discard.updated_at),
    ended: moment(discard.ended_at),
  });
}
