/** Compares the table of log events in docs/operations.md with the sources: in both directions, with levels. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** A call of a logger: its level or the expression in brackets, and the text after it. */
const LOG_CALL = /\blog(?:\.(fatal|error|warn|info|debug|trace)|\[([^\]]*)\])\((?=([\s\S]{0,80}))/g;
/** Each call begins with its event as a literal, so that an event from a log can be found in the sources. */
const EVENT = /^\s*\{\s*event: "([a-z_]+)"/;

interface Logged {
  readonly event: string | undefined;
  readonly levels: readonly string[];
  readonly where: string;
}

const logged: readonly Logged[] = sources().flatMap((path) =>
  [...readFileSync(`${ROOT}${path}`, "utf8").matchAll(LOG_CALL)].map(([, level, chosen = "", rest = ""]) => ({
    event: EVENT.exec(rest)?.[1],
    levels: level === undefined ? [...chosen.matchAll(/"([a-z]+)"/g)].map(([, name = ""]) => name) : [level],
    where: `${path}: ${rest.slice(0, 40)}`,
  })),
);

function sources(): string[] {
  const apps = readdirSync(`${ROOT}apps`).map((app) => `apps/${app}/src`);
  return [
    ...apps,
    "packages/provider/src",
    "packages/relay-kit/src",
    "packages/service-kit/src",
    "packages/store/src",
  ].flatMap((folder) =>
    readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
      .map((path) => `${folder}/${path}`),
  );
}

/** The levels of each event in the table below "Log lines". */
function documentedEvents(): Map<string, readonly string[]> {
  const text = readFileSync(`${ROOT}docs/operations.md`, "utf8");
  const table = /\| Event \| Level \|[^\n]*\n\|[-|]+\n((?:\|[^\n]*\n)+)/.exec(text)?.[1] ?? "";
  return new Map(
    table.split("\n").flatMap((row) => {
      const [, events = "", levels = ""] = row.split("|");
      return [...events.matchAll(/`([a-z_]+)`/g)].map(
        ([, event = ""]) => [event, levels.trim().split(", ")] as const,
      );
    }),
  );
}

test("every log call names its event as a literal", () => {
  expect(logged.length).toBeGreaterThan(30);
  expect(logged.filter(({ event }) => event === undefined).map(({ where }) => where)).toEqual([]);
});

test("the documented events are exactly the events that the sources log", () => {
  const inSources = new Set(logged.map(({ event }) => event));
  expect([...documentedEvents().keys()].sort()).toEqual([...inSources].sort());
});

test("each event is logged at the levels of the table", () => {
  const documented = documentedEvents();
  const wrong = logged.flatMap(({ event = "", levels, where }) =>
    levels.filter((level) => !documented.get(event)?.includes(level)).map((level) => `${level}: ${where}`),
  );
  expect(wrong).toEqual([]);
});
