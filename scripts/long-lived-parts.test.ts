/** Every class that can be stopped is run through testkit's cases of start and stop. */
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

function read(...patterns: string[]): string[] {
  return globSync(patterns, { cwd: ROOT }).map((path) => readFileSync(`${ROOT}${path}`, "utf8"));
}

/** The classes of a file that have a method `stop`. Our formatter closes a class in the first column. */
function stoppableClasses(text: string): string[] {
  const classes = [...text.matchAll(/^(?:export )?class (\w+).*?^\}/gms)];
  return classes.filter(([body]) => /^ {2}(?:async )?stop\(/m.test(body)).flatMap(([, name]) => name ?? []);
}

const SHIPPED = read("{apps,packages}/*/src/**/!(*.test).ts", "scripts/start/!(*.test).ts");
const SUITES = read("{apps,packages}/*/test/start-stop.test.ts", "scripts/start/*.test.ts").join("\n");
const CLASSES = SHIPPED.flatMap(stoppableClasses);

test("the search finds classes that can be stopped", () => {
  expect(CLASSES).toEqual(expect.arrayContaining(["Periodic", "HttpServer", "Deliveries", "KeptProcess"]));
});

test.each(CLASSES)("%s keeps the contract of start and stop", (name) => {
  expect(SUITES).toMatch(new RegExp(`\\b${name}\\b`));
});
