/** The rules of turns. The scripts are compared with them in packages/store/test/turns.test.ts. */
import { expect, test } from "vitest";
import { decideTurn, TURN_EVENTS, TURN_STATES, type TurnTransition, type TurnView } from "./turns.ts";

const VIEWS: readonly TurnView[] = [
  { kind: "none" },
  { kind: "running", otherLeases: 0 },
  { kind: "running", otherLeases: 1 },
  { kind: "waiting", isOver: false },
  { kind: "waiting", isOver: true },
];

/** In the order of TURN_EVENTS: open, join, write, end_step, final, due. */
const EXPECTED: readonly (readonly TurnTransition[])[] = [
  ["running", "refused", "refused", "refused", "refused", "refused"],
  ["refused", "running", "running", "waiting", "ended", "refused"],
  ["refused", "running", "running", "running", "running", "refused"],
  ["refused", "running", "running", "waiting", "ended", "refused"],
  ["refused", "running", "running", "waiting", "ended", "ended"],
];

test.each(VIEWS.map((view, at) => [view, EXPECTED[at]] as const))(
  "each event has one answer for the turn %o",
  (view, expected) => {
    expect(TURN_EVENTS.map((event) => decideTurn(view, event))).toEqual(expected);
  },
);

test("no event but the opening brings a turn to life", () => {
  expect(TURN_EVENTS.filter((event) => decideTurn({ kind: "none" }, event) !== "refused")).toEqual(["open"]);
});

test("a turn never ends while another of its steps has a lease", () => {
  const views = VIEWS.filter((view) => view.kind === "running" && view.otherLeases > 0);
  expect(views.flatMap((view) => TURN_EVENTS.map((event) => decideTurn(view, event)))).not.toContain("ended");
});

test("the views cover every state", () => {
  expect(new Set(VIEWS.map(({ kind }) => kind))).toEqual(new Set(TURN_STATES));
});
